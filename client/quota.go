package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/forewarm/forewarm/contract"
)

// Quota reads a tenant's limits.
func (c *Client) Quota(ctx context.Context, organizationID string) (contract.Quota, error) {
	return callFor[contract.Quota](ctx, c, call{method: http.MethodGet,
		path: []string{"organizations", organizationID, "quota"}})
}

// SetQuota replaces a tenant's limits, if it still has the version. With force
// promises beyond them are kept and marked degraded; without, they are a problem.
func (c *Client) SetQuota(ctx context.Context, organizationID string, version int, in contract.Limits,
	force bool) (contract.QuotaChanged, error) {
	r := call{method: http.MethodPut, path: []string{"organizations", organizationID, "quota"}, body: in,
		header: ifMatch(version)}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	return callFor[contract.QuotaChanged](ctx, c, r)
}

// Usage reads what a tenant holds, is promised for the hours to come, and used.
func (c *Client) Usage(ctx context.Context, organizationID string, hours int) (contract.QuotaUsage, error) {
	return callFor[contract.QuotaUsage](ctx, c, call{method: http.MethodGet,
		path:  []string{"organizations", organizationID, "usage"},
		query: url.Values{"hours": {strconv.Itoa(hours)}}})
}

// SetUserCaps caps what a person's keys may book, if the user still has the
// version; nil caps are none.
func (c *Client) SetUserCaps(ctx context.Context, userID string, version int,
	caps *contract.Caps) (contract.User, error) {
	return callFor[contract.User](ctx, c, call{method: http.MethodPut, path: []string{"users", userID, "caps"},
		body: contract.UserCaps{Caps: caps}, header: ifMatch(version)})
}
