package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Shares reads the fair shares of a pool, by id or name.
func (c *Client) Shares(ctx context.Context, idOrName string) (contract.Shares, error) {
	return callFor[contract.Shares](ctx, c, call{method: http.MethodGet, path: []string{"pools", idOrName, "shares"}})
}
