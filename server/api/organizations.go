package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func organizationEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, createOrganization, (*create[contract.OrganizationCreate]).body,
			func(o contract.Organization) (string, int) { return "/v1/organizations/" + o.ID, o.Version }),
		serve(a, operation.Operation{ID: "listOrganizations", Method: http.MethodGet, Path: "/organizations",
			Tag: "identity", Policy: auth.Viewer, Summary: "List tenants"}, listOrganizations),
		serve(a, operation.Operation{ID: "getOrganization", Method: http.MethodGet, Path: "/organizations/{id}",
			Tag: "identity", Policy: auth.Viewer, Summary: "Read a tenant"}, getOrganization),
		serve(a, operation.Operation{ID: "deleteOrganization", Method: http.MethodDelete, Path: "/organizations/{id}",
			Tag: "identity", Status: http.StatusNoContent, Policy: auth.Operator,
			Summary: "Delete a tenant that holds nothing, with its people and keys; its history stays"},
			deleteOrganization),
	}
}

var createOrganization = operation.Change[contract.OrganizationCreate, ledger.Organization, contract.Organization]{
	Operation: operation.Operation{ID: "createOrganization", Method: http.MethodPost, Path: "/organizations",
		Tag: "identity", Status: http.StatusCreated, Policy: auth.Operator, Summary: "Make a tenant"},
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.OrganizationCreate) (ledger.Organization, error) {
		return l.CreateOrganization(ctx, actor, b.Name, decodeLimits(b.Limits))
	},
	Encode: forAnybody(encodeOrganization),
}

func listOrganizations(ctx context.Context, a *API,
	in *struct{ Page }) (out *ListOut[contract.Organization], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		out, err = readPage(in.Page, "org", func(p ledger.Page) ([]ledger.Organization, error) {
			return r.Organizations(auth.From(ctx).Scope(), p)
		}, func(o ledger.Organization) string { return o.ID }, encodeOrganization)
		return err
	})
	return out, err
}

func getOrganization(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Organization], error) {
	var o ledger.Organization
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		o, err = ledger.LiveOrganization(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.Organization]{ETag: formatETag(o.Version), Body: encodeOrganization(o)}, err
}

func deleteOrganization(ctx context.Context, a *API, in *struct{ ByID }) (*struct{}, error) {
	ended, err := a.Ledger.DeleteOrganization(ctx, auth.From(ctx), in.ID)
	a.forgetKeys(ended, err)
	return nil, err
}

// resolveOwner is the organization that a request names by id or name, or the actor's
// own when it names none. Only operators may name another: to everybody else it
// is refused whether it exists or not.
func (a *API) resolveOwner(ctx context.Context, actor ledger.Actor, named string) (string, error) {
	if named == "" {
		return actor.OrganizationID, nil
	}
	id, err := a.resolveField(ctx, ledger.NounOrganization, "organization_id", named)
	if err != nil && actor.Role != ledger.Operator {
		return "", ledger.ErrDenied
	}
	return id, err
}

func encodeOrganization(o ledger.Organization) contract.Organization {
	return contract.Organization{ID: o.ID, Name: o.Name, CreatedAt: o.CreatedAt.UTC(), Version: o.Version,
		Limits: encodeLimits(o.Limits)}
}
