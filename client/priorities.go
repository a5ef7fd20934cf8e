package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// Priorities reads the classes that jobs can have, the lowest first, and which of them this key's jobs may have.
func (c *Client) Priorities(ctx context.Context) ([]contract.PriorityClass, error) {
	found, err := callFor[contract.List[contract.PriorityClass]](ctx, c, call{method: http.MethodGet,
		path: []string{"priorities"}})
	return found.Items, err
}
