package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Cycle reads what the scheduler of jobs would decide now in a pool, by id or name, and on what. Operators only.
func (c *Client) Cycle(ctx context.Context, idOrName string) (contract.Cycle, error) {
	return callFor[contract.Cycle](ctx, c, call{method: http.MethodGet, path: []string{"pools", idOrName, "cycle"}})
}

// Shares reads the fair shares of a pool, by id or name.
func (c *Client) Shares(ctx context.Context, idOrName string) (contract.Shares, error) {
	return callFor[contract.Shares](ctx, c, call{method: http.MethodGet, path: []string{"pools", idOrName, "shares"}})
}
