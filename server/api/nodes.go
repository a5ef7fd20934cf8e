package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) nodes() {
	handle(a, operation{http.MethodGet, "/nodes", "listNodes", "capacity", "List nodes, the newest first", 0}, a.listNodes)
	handle(a, operation{http.MethodGet, "/nodes/{id}", "getNode", "capacity", "Read a node", 0}, a.getNode)
	handle(a, operation{http.MethodGet, "/gpus", "listGPUs", "capacity", "List the devices of live nodes", 0}, a.listGPUs)
	for _, m := range []struct {
		name, summary string
		verb          func(context.Context, ledger.Actor, string) (node.Node, error)
	}{
		{"drain", "Let a node take no new work", a.Ledger.DrainNode},
		{"resume", "Take a node back into use: a draining one at once, a quarantined one after its health gate", a.Ledger.ResumeNode},
		{"quarantine", "Keep a node and its machine for inspection: holders stay, nothing new comes", a.Ledger.QuarantineNode},
	} {
		handle(a, operation{http.MethodPost, "/nodes/{id}/" + m.name, m.name + "Node", "capacity", m.summary, 0},
			func(ctx context.Context, in *struct {
				ByID
				Idempotency
			},
			) (*Made[contract.Node], error) {
				return once(ctx, a, "POST /v1/nodes/{id}/"+m.name, in.Idempotency, in.ID, func(ctx context.Context) (int, contract.Node, error) {
					n, err := m.verb(ctx, auth.From(ctx), in.ID)
					return http.StatusOK, encodeNode(auth.From(ctx), n), err
				})
			})
	}
}

// NodeFilter narrows a list of nodes.
type NodeFilter struct {
	Pool  string   `query:"pool" maxLength:"64" doc:"Id or name."`
	State []string `query:"state" enum:"requested,provisioning,booting,ready,draining,deprovisioning,gone,failed,lost,quarantined,needs_attention"`
	All   bool     `query:"all" doc:"Also those that are over. Without it, and without a state, only those that are not."`
}

func (a *API) nodeFilter(ctx context.Context, r ledger.Reader, f NodeFilter) (ledger.NodeFilter, error) {
	id, err := a.poolID(ctx, r, f.Pool)
	out := ledger.NodeFilter{PoolID: id, Live: !f.All && len(f.State) == 0}
	for _, s := range f.State {
		out.State = append(out.State, node.State(s))
	}
	return out, err
}

func (a *API) listNodes(ctx context.Context, in *struct {
	Page
	NodeFilter
},
) (out *ListOut[contract.Node], err error) {
	actor := auth.From(ctx)
	err = a.read(ctx, func(r ledger.Reader) error {
		f, err := a.nodeFilter(ctx, r, in.NodeFilter)
		if err != nil {
			return err
		}
		out, err = paged(in.Page, "nod", func(p ledger.Page) ([]node.Node, error) { return r.Nodes(f, p) },
			nodeID, func(n node.Node) contract.Node { return encodeNode(actor, n) })
		return err
	})
	return out, err
}

func (a *API) getNode(ctx context.Context, in *struct{ ByID }) (*One[contract.Node], error) {
	var n node.Node
	err := a.read(ctx, func(r ledger.Reader) (err error) {
		n, err = r.Node(in.ID)
		return err
	})
	return &One[contract.Node]{ETag: etag(n.Version), Body: encodeNode(auth.From(ctx), n)}, err
}

// listGPUs pages by node: a page holds the devices of up to limit nodes.
func (a *API) listGPUs(ctx context.Context, in *struct {
	Page
	Pool string `query:"pool" maxLength:"64" doc:"Id or name."`
},
) (*ListOut[contract.GPU], error) {
	out := &ListOut[contract.GPU]{Body: contract.List[contract.GPU]{Items: []contract.GPU{}}}
	err := a.read(ctx, func(r ledger.Reader) error {
		id, err := a.poolID(ctx, r, in.Pool)
		if err != nil {
			return err
		}
		nodes, err := paged(in.Page, "gpu", func(p ledger.Page) ([]node.Node, error) {
			return r.Nodes(ledger.NodeFilter{PoolID: id, Live: true}, p)
		}, nodeID, func(n node.Node) node.Node { return n })
		if err != nil {
			return err
		}
		for _, n := range nodes.Body.Items {
			out.Body.Items = append(out.Body.Items, devices(n)...)
		}
		out.Body.NextCursor = nodes.Body.NextCursor
		return nil
	})
	return out, err
}

func nodeID(n node.Node) string { return n.ID }

func devices(n node.Node) []contract.GPU {
	var out []contract.GPU
	for _, d := range n.Devices {
		out = append(out, contract.GPU{UUID: d.UUID, NodeID: n.ID, PoolID: n.PoolID, Index: d.Index, Model: d.Model,
			MemoryMiB: d.MemoryMiB, NodeState: string(n.State()), Simulated: n.Simulated})
	}
	return out
}

// encodeNode shows where a machine is only to operators.
func encodeNode(actor ledger.Actor, n node.Node) contract.Node {
	out := contract.Node{
		ID: n.ID, PoolID: n.PoolID, Slot: n.Slot, Generation: n.Generation, State: string(n.State()), Reason: n.Reason,
		GPUs: len(n.Devices), Simulated: n.Simulated, Provisioner: n.Source.Provisioner, Region: n.Source.Region,
		InstanceType: n.Source.Type, PricePerNodeHour: money(n.Source.Price), RequestedAt: n.RequestedAt.UTC(), BootingAt: n.BootingAt.UTC(),
		Kept: n.Kept(), Resuming: n.Quarantine.Resuming, QuarantinedAt: n.Quarantine.Since().UTC(),
		ReadyAt: n.ReadyAt.UTC(), RetiredAt: n.RetiredAt.UTC(), GoneAt: n.GoneAt.UTC(), Version: n.Version,
	}
	if actor.Role == ledger.Operator {
		out.ProviderID, out.Address, out.ExpiresAt = n.ProviderID, n.Address, n.ExpiresAt.UTC()
	}
	return out
}
