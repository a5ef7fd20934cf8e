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

func userEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, createUser(a), (*create[contract.UserCreate]).body,
			func(u contract.User) (string, int) { return "", u.Version }),
		serve(a, operation.Operation{ID: "listUsers", Method: http.MethodGet, Path: "/users", Tag: "identity",
			Policy: auth.Admin, Summary: "List people"}, listUsers),
		serve(a, operation.Operation{ID: "getUser", Method: http.MethodGet, Path: "/users/{id}", Tag: "identity",
			Policy: auth.Admin, Summary: "Read a person"}, getUser),
		serve(a, operation.Operation{ID: "patchUser", Method: http.MethodPatch, Path: "/users/{id}", Tag: "identity",
			Policy: auth.Admin, Summary: "Change a person's role, or deactivate them"}, patchUser),
		serve(a, operation.Operation{ID: "deleteUser", Method: http.MethodDelete, Path: "/users/{id}", Tag: "identity",
			Status: http.StatusNoContent, Policy: auth.Admin,
			Summary: "Delete a person with their keys; what they booked stays"}, deleteUser),
	}
}

func createUser(a *API) operation.Change[contract.UserCreate, ledger.User, contract.User] {
	return operation.Change[contract.UserCreate, ledger.User, contract.User]{
		Operation: operation.Operation{ID: "createUser", Method: http.MethodPost, Path: "/users", Tag: "identity",
			Status: http.StatusCreated, Policy: auth.Admin, Summary: "Add a person"},
		Check: func(ctx context.Context, v operation.Viewer, b *contract.UserCreate) (err error) {
			b.OrganizationID, err = a.resolveOwner(ctx, v.Actor, b.OrganizationID)
			return err
		},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
			b contract.UserCreate) (ledger.User, error) {
			return l.CreateUser(ctx, actor, ledger.User{OrganizationID: b.OrganizationID, Email: b.Email,
				Role: ledger.Role(b.Role)})
		},
		Encode: forAnybody(encodeUser),
	}
}

func listUsers(ctx context.Context, a *API, in *struct {
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

func getUser(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.User], error) {
	var u ledger.User
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		u, err = ledger.LiveUser(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.User]{ETag: formatETag(u.Version), Body: encodeUser(u)}, err
}

func patchUser(ctx context.Context, a *API, in *struct {
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

func deleteUser(ctx context.Context, a *API, in *struct{ ByID }) (*struct{}, error) {
	ended, err := a.Ledger.DeleteUser(ctx, auth.From(ctx), in.ID)
	a.forgetKeys(ended, err)
	return nil, err
}

func encodeUser(u ledger.User) contract.User {
	return contract.User{ID: u.ID, OrganizationID: u.OrganizationID, Email: u.Email, Role: string(u.Role),
		Active: u.Active,
		Caps:   encodeCaps(u.Caps), CreatedAt: u.CreatedAt.UTC(), Version: u.Version}
}
