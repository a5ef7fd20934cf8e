package client

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
)

// PutJobOutput stores what a job wrote on a node, with the key of the node's daemon.
func (c *Client) PutJobOutput(ctx context.Context, nodeID, jobID string, in contract.JobOutputPart) (
	contract.JobOutputStored, error) {
	return callFor[contract.JobOutputStored](ctx, c, call{method: http.MethodPut,
		path: []string{"nodes", nodeID, "jobs", jobID, "output"}, body: in})
}
