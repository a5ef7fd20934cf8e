package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Whoami says who the key is.
func (c *Client) Whoami(ctx context.Context) (contract.Whoami, error) {
	return callFor[contract.Whoami](ctx, c, call{method: http.MethodGet, path: []string{"whoami"}})
}

// Version says which program answers.
func (c *Client) Version(ctx context.Context) (contract.Build, error) {
	return callFor[contract.Build](ctx, c, call{method: http.MethodGet, path: []string{"version"}})
}

// CreateOrganization makes a tenant.
func (c *Client) CreateOrganization(ctx context.Context,
	in contract.OrganizationCreate) (contract.Organization, error) {
	return callFor[contract.Organization](ctx, c,
		call{method: http.MethodPost, path: []string{"organizations"}, body: in})
}

// Organization reads a tenant.
func (c *Client) Organization(ctx context.Context, id string) (contract.Organization, error) {
	return callFor[contract.Organization](ctx, c, call{method: http.MethodGet, path: []string{"organizations", id}})
}

// Organizations lists the tenants that the key may see.
func (c *Client) Organizations(ctx context.Context, f Filter) iter.Seq2[contract.Organization, error] {
	return listItems[contract.Organization](ctx, c, f, "organizations")
}

// DeleteOrganization ends a tenant that holds nothing any more, with its people
// and keys. With anything live it is an *Error with the code in-use.
func (c *Client) DeleteOrganization(ctx context.Context, idOrName string) error {
	_, err := callFor[struct{}](ctx, c, call{method: http.MethodDelete, path: []string{"organizations", idOrName}})
	return err
}

// DeleteUser ends a person, by id or e-mail address, with their keys.
func (c *Client) DeleteUser(ctx context.Context, idOrEmail string) error {
	_, err := callFor[struct{}](ctx, c, call{method: http.MethodDelete, path: []string{"users", idOrEmail}})
	return err
}

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, in contract.UserCreate) (contract.User, error) {
	return callFor[contract.User](ctx, c, call{method: http.MethodPost, path: []string{"users"}, body: in})
}

// Users lists users.
func (c *Client) Users(ctx context.Context, f Filter) iter.Seq2[contract.User, error] {
	return listItems[contract.User](ctx, c, f, "users")
}

// User reads one person.
func (c *Client) User(ctx context.Context, idOrEmail string) (contract.User, error) {
	return callFor[contract.User](ctx, c, call{method: http.MethodGet, path: []string{"users", idOrEmail}})
}

// PatchUser changes a user, if it still has the version.
func (c *Client) PatchUser(ctx context.Context, id string, version int, in contract.UserPatch) (contract.User, error) {
	return callFor[contract.User](ctx, c, call{method: http.MethodPatch, path: []string{"users", id}, body: in,
		header: ifMatch(version)})
}

// CreateKey makes an API key. The answer is the only place where its secret is
// ever shown; a repeat with the same idempotency key is refused and names the key.
func (c *Client) CreateKey(ctx context.Context, in contract.KeyCreate) (contract.KeyCreated, error) {
	return callFor[contract.KeyCreated](ctx, c, call{method: http.MethodPost, path: []string{"keys"}, body: in})
}

// Keys lists keys without their secrets: those that work, and with Filter.All
// those that ended, too.
func (c *Client) Keys(ctx context.Context, f Filter) iter.Seq2[contract.Key, error] {
	return listItems[contract.Key](ctx, c, f, "keys")
}

// AdoptKey has a key stand for itself: it does not end with the key that made it
// any more. Only an operator may.
func (c *Client) AdoptKey(ctx context.Context, id string) (contract.Key, error) {
	return callFor[contract.Key](ctx, c, call{method: http.MethodPost, path: []string{"keys", id, "adopt"}})
}

// RevokeKey ends a key and all that rest on it. It works for at most five seconds more.
func (c *Client) RevokeKey(ctx context.Context, id string) (contract.Key, error) {
	return callFor[contract.Key](ctx, c, call{method: http.MethodDelete, path: []string{"keys", id}})
}
