package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) registerDeletions() {
	registerOperation(a, operation{http.MethodDelete, "/pools/{id}", "deletePool", "capacity",
		"End a pool in which nothing is left; its history stays", 204}, a.deletePool)
	registerOperation(a, operation{http.MethodDelete, "/organizations/{id}", "deleteOrganization", "identity",
		"End a tenant that holds nothing, with its people and keys; its history stays", 204}, a.deleteOrganization)
	registerOperation(a, operation{http.MethodDelete, "/users/{id}", "deleteUser", "identity",
		"End a person with their keys; what they booked stays", 204}, a.deleteUser)
}

func (a *API) deletePool(ctx context.Context, in *struct{ ByID }) (*struct{}, error) {
	return nil, a.Ledger.DeletePool(ctx, auth.From(ctx), in.ID)
}

func (a *API) deleteOrganization(ctx context.Context, in *struct{ ByID }) (*struct{}, error) {
	ended, err := a.Ledger.DeleteOrganization(ctx, auth.From(ctx), in.ID)
	a.forgetKeys(ended, err)
	return nil, err
}

func (a *API) deleteUser(ctx context.Context, in *struct{ ByID }) (*struct{}, error) {
	ended, err := a.Ledger.DeleteUser(ctx, auth.From(ctx), in.ID)
	a.forgetKeys(ended, err)
	return nil, err
}

// forgetKeys has keys that have ended open nothing here at once, and elsewhere when
// what is remembered of them is too old.
func (a *API) forgetKeys(keyIDs []string, err error) {
	if err != nil {
		return
	}
	for _, id := range keyIDs {
		a.Auth.Forget(id)
	}
}
