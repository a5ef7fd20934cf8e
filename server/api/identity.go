package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) registerIdentity() {
	registerOperation(a, operation{http.MethodGet, "/whoami", "whoami", "identity", "Who the key is", 0}, a.getWhoami)
	registerOperation(a, operation{http.MethodGet, "/version", "version", "system", "Which program answers", 0}, a.getVersion)
	registerOperation(a, operation{http.MethodPost, "/organizations", "createOrganization", "identity", "Make a tenant", 201},
		a.createOrganization)
	registerOperation(a, operation{http.MethodGet, "/organizations", "listOrganizations", "identity", "List tenants", 0},
		a.listOrganizations)
	registerOperation(a, operation{http.MethodGet, "/organizations/{id}", "getOrganization", "identity", "Read a tenant", 0},
		a.getOrganization)
	registerOperation(a, operation{http.MethodPost, "/users", "createUser", "identity", "Add a person", 201}, a.createUser)
	registerOperation(a, operation{http.MethodGet, "/users", "listUsers", "identity", "List people", 0}, a.listUsers)
	registerOperation(a, operation{http.MethodGet, "/users/{id}", "getUser", "identity", "Read a person", 0}, a.getUser)
	registerOperation(a, operation{http.MethodPatch, "/users/{id}", "patchUser", "identity",
		"Change a person's role, or shut them out", 0}, a.patchUser)
}

func (a *API) getWhoami(ctx context.Context, _ *struct{}) (*One[contract.Whoami], error) {
	actor := auth.From(ctx)
	out := contract.Whoami{KeyID: actor.KeyID, Kind: string(actor.Kind), OrganizationID: actor.OrganizationID,
		UserID: actor.UserID, Role: string(actor.Role), Caps: encodeCaps(actor.Caps), UserCaps: encodeCaps(actor.UserCaps)}
	if out.Caps == nil && out.UserCaps == nil {
		return &One[contract.Whoami]{Body: out}, nil
	}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		c, err := r.Commitments(actor.OrganizationID)
		out.Used = encodeCapsUse(actor.Caps, c.ByKey[actor.KeyID], r.Now())
		out.UserUsed = encodeCapsUse(actor.UserCaps, c.ByUser[actor.UserID], r.Now())
		return err
	})
	return &One[contract.Whoami]{Body: out}, err
}

func (a *API) getVersion(ctx context.Context, _ *struct{}) (*One[contract.Build], error) {
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

func (a *API) createOrganization(ctx context.Context, in *struct {
	Idempotency
	Body contract.OrganizationCreate
},
) (*Created[contract.Organization], error) {
	out, err := runOnce(ctx, a, "POST /v1/organizations", in.Idempotency, in.Body,
		func(ctx context.Context, a *API) (int, contract.Organization, error) {
			o, err := a.Ledger.CreateOrganization(ctx, auth.From(ctx), in.Body.Name, decodeLimits(in.Body.Limits))
			return http.StatusCreated, encodeOrganization(o), err
		})
	if err != nil {
		return nil, err
	}
	out.Location, out.ETag = "/v1/organizations/"+out.Body.ID, formatETag(out.Body.Version)
	return out, nil
}

func (a *API) listOrganizations(ctx context.Context,
	in *struct{ Page }) (out *ListOut[contract.Organization], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		out, err = readPage(in.Page, "org", func(p ledger.Page) ([]ledger.Organization, error) {
			return r.Organizations(auth.From(ctx).Scope(), p)
		}, func(o ledger.Organization) string { return o.ID }, encodeOrganization)
		return err
	})
	return out, err
}

func (a *API) getOrganization(ctx context.Context, in *struct{ ByID }) (*One[contract.Organization], error) {
	var o ledger.Organization
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		o, err = ledger.LiveOrganization(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.Organization]{ETag: formatETag(o.Version), Body: encodeOrganization(o)}, err
}

func (a *API) createUser(ctx context.Context, in *struct {
	Idempotency
	Body contract.UserCreate
},
) (*Created[contract.User], error) {
	actor := auth.From(ctx)
	owner, err := a.resolveOwner(ctx, actor, in.Body.OrganizationID)
	if err != nil {
		return nil, err
	}
	out, err := runOnce(ctx, a, "POST /v1/users", in.Idempotency, in.Body,
		func(ctx context.Context, a *API) (int, contract.User, error) {
			u, err := a.Ledger.CreateUser(ctx, actor, ledger.User{OrganizationID: owner,
				Email: in.Body.Email, Role: ledger.Role(in.Body.Role)})
			return http.StatusCreated, encodeUser(u), err
		})
	if err != nil {
		return nil, err
	}
	out.ETag = formatETag(out.Body.Version)
	return out, nil
}

func (a *API) listUsers(ctx context.Context, in *struct {
	Page
	OfOrganization
},
) (out *ListOut[contract.User], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		out, err = readPage(in.Page, "usr", func(p ledger.Page) ([]ledger.User, error) {
			return r.Users(s, p)
		}, func(u ledger.User) string { return u.ID }, encodeUser)
		return err
	})
	return out, err
}

func (a *API) getUser(ctx context.Context, in *struct{ ByID }) (*One[contract.User], error) {
	var u ledger.User
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		u, err = ledger.LiveUser(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.User]{ETag: formatETag(u.Version), Body: encodeUser(u)}, err
}

func (a *API) patchUser(ctx context.Context, in *struct {
	ByID
	Match
	Body contract.UserPatch
},
) (*One[contract.User], error) {
	version, err := in.parseIfMatch()
	if err != nil {
		return nil, err
	}
	actor := auth.From(ctx)
	var u ledger.User
	if err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		u, err = ledger.LiveUser(r, actor.Scope(), in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	if in.Body.Role != nil {
		u.Role = ledger.Role(*in.Body.Role)
	}
	if in.Body.Active != nil {
		u.Active = *in.Body.Active
	}
	if u, err = a.Ledger.UpdateUser(ctx, actor, in.ID, version, u.Role, u.Active); err != nil {
		return nil, err
	}
	a.Auth.ForgetPerson(u.ID)
	return &One[contract.User]{ETag: formatETag(u.Version), Body: encodeUser(u)}, nil
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

func encodeUser(u ledger.User) contract.User {
	return contract.User{ID: u.ID, OrganizationID: u.OrganizationID, Email: u.Email, Role: string(u.Role),
		Active: u.Active,
		Caps:   encodeCaps(u.Caps), CreatedAt: u.CreatedAt.UTC(), Version: u.Version}
}
