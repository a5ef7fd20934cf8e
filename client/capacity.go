package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// CreatePool defines a pool.
func (c *Client) CreatePool(ctx context.Context, in contract.PoolCreate) (contract.Pool, error) {
	return callFor[contract.Pool](ctx, c, call{method: http.MethodPost, path: []string{"pools"}, body: in})
}

// Pool reads a pool by id or name.
func (c *Client) Pool(ctx context.Context, idOrName string) (contract.Pool, error) {
	return callFor[contract.Pool](ctx, c, call{method: http.MethodGet, path: []string{"pools", idOrName}})
}

// Pools lists pools.
func (c *Client) Pools(ctx context.Context, f Filter) iter.Seq2[contract.Pool, error] {
	return listItems[contract.Pool](ctx, c, f, "pools")
}

// PatchPool changes a pool, if it still has the version.
func (c *Client) PatchPool(ctx context.Context, idOrName string, version int,
	in contract.PoolPatch) (contract.Pool, error) {
	return callFor[contract.Pool](ctx, c, call{method: http.MethodPatch, path: []string{"pools", idOrName}, body: in,
		header: ifMatch(version)})
}

// DeletePool ends a pool in which nothing is left. With anything live it is an
// *Error with the code in-use, whose blockers name everything.
func (c *Client) DeletePool(ctx context.Context, idOrName string) error {
	_, err := callFor[struct{}](ctx, c, call{method: http.MethodDelete, path: []string{"pools", idOrName}})
	return err
}

// Node reads a node.
func (c *Client) Node(ctx context.Context, id string) (contract.Node, error) {
	return callFor[contract.Node](ctx, c, call{method: http.MethodGet, path: []string{"nodes", id}})
}

// Nodes lists nodes.
func (c *Client) Nodes(ctx context.Context, f Filter) iter.Seq2[contract.Node, error] {
	return listItems[contract.Node](ctx, c, f, "nodes")
}

// PatchNode changes the labels and taints of a node, if it still has the version.
func (c *Client) PatchNode(ctx context.Context, id string, version int, in contract.NodePatch) (contract.Node, error) {
	return callFor[contract.Node](ctx, c, call{method: http.MethodPatch, path: []string{"nodes", id}, body: in,
		header: ifMatch(version)})
}

// DrainNode lets a node take no new work. The reason, up to 200 bytes, is for people; empty: none.
func (c *Client) DrainNode(ctx context.Context, id, reason string) (contract.Node, error) {
	return callFor[contract.Node](ctx, c, call{method: http.MethodPost, path: []string{"nodes", id, "drain"},
		body: haltFor(reason)})
}

// ResumeNode lets a drained or quarantined node take work again.
func (c *Client) ResumeNode(ctx context.Context, id string) (contract.Node, error) {
	return callFor[contract.Node](ctx, c, call{method: http.MethodPost, path: []string{"nodes", id, "resume"}})
}

// QuarantineNode keeps a node for inspection. The reason, up to 200 bytes, is for people; empty: none.
func (c *Client) QuarantineNode(ctx context.Context, id, reason string) (contract.Node, error) {
	return callFor[contract.Node](ctx, c, call{method: http.MethodPost, path: []string{"nodes", id, "quarantine"},
		body: haltFor(reason)})
}

// haltFor is the body of a request with a reason; without one there is none.
func haltFor(reason string) any {
	if reason == "" {
		return nil
	}
	return contract.NodeHalt{Reason: reason}
}

// GPU reads a device of a live node by its UUID.
func (c *Client) GPU(ctx context.Context, uuid string) (contract.GPU, error) {
	return callFor[contract.GPU](ctx, c, call{method: http.MethodGet, path: []string{"gpus", uuid}})
}

// GPUHistory reads what a device of a live node did since a time, a day ago at most and where that is zero, in steps
// of a multiple of five minutes, up to a day. It is what the server that answers was told: see Complete and Elsewhere.
func (c *Client) GPUHistory(ctx context.Context, uuid string, since time.Time,
	step time.Duration) (contract.GPUHistory, error) {
	q := url.Values{"step_seconds": {strconv.FormatInt(int64(step/time.Second), 10)}}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	return callFor[contract.GPUHistory](ctx, c, call{method: http.MethodGet, path: []string{"gpus", uuid, "history"},
		query: q})
}

// GPUs lists the devices of live nodes, by node and index.
func (c *Client) GPUs(ctx context.Context, f GPUFilter) iter.Seq2[contract.GPU, error] {
	q := f.query()
	for key, value := range map[string]string{"node": f.Node, "model": f.Model, "health": strings.Join(f.Health, ",")} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return listPages[contract.GPU](ctx, c, q, "gpus")
}

// GPUFilter narrows a list of devices. Zero fields do not narrow. State is any of
// free, held, booked, coming and unavailable; the organization is who holds them.
type GPUFilter struct {
	Filter
	Node   string // id
	Model  string
	Health []string // any of healthy, degraded, unhealthy, unknown
}
