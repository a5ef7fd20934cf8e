package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func identityEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "whoami", Method: http.MethodGet, Path: "/whoami", Tag: "identity",
			Policy: auth.AnyKey, Summary: "Show whose key this is"}, getWhoami),
		serve(a, operation.Operation{ID: "version", Method: http.MethodGet, Path: "/version", Tag: "system",
			Policy: auth.AnyKey, Summary: "Show the server's version"}, getVersion),
	}
}

func getWhoami(ctx context.Context, a *API, _ *struct{}) (*One[contract.Whoami], error) {
	actor := auth.From(ctx)
	out := contract.Whoami{KeyID: actor.KeyID, Kind: string(actor.Kind), OrganizationID: actor.OrganizationID,
		UserID: actor.UserID, Role: string(actor.Role), Caps: encodeCaps(actor.Caps),
		UserCaps: encodeCaps(actor.UserCaps)}
	if out.Caps == nil && out.UserCaps == nil {
		return &One[contract.Whoami]{Body: out}, nil
	}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		c, err := r.LiveCommitments(actor.OrganizationID)
		out.Used = encodeCapsUse(actor.Caps, c.ByKey[actor.KeyID], r.Now())
		out.UserUsed = encodeCapsUse(actor.UserCaps, c.ByUser[actor.UserID], r.Now())
		return err
	})
	return &One[contract.Whoami]{Body: out}, err
}

func getVersion(ctx context.Context, a *API, _ *struct{}) (*One[contract.Build], error) {
	out := &One[contract.Build]{Body: a.Build}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		for page := (ledger.Page{Limit: allPools}); ; {
			pools, err := r.Pools(page)
			if err != nil {
				return err
			}
			for _, p := range pools {
				if page.After = p.ID; p.Simulated {
					out.Body.SimulatedPools = append(out.Body.SimulatedPools, p.Name)
				}
			}
			if len(pools) < page.Limit {
				return nil
			}
		}
	})
	slices.Sort(out.Body.SimulatedPools)
	out.Body.Simulation = out.Body.Simulation || len(out.Body.SimulatedPools) > 0
	return out, err
}

// allPools is how many pools are read at once where all are.
const allPools = 500
