package api

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func nodeEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "listNodes", Method: http.MethodGet, Path: "/nodes", Tag: "capacity",
			Policy:  auth.Viewer,
			Summary: "List nodes, the newest first: to tenants those that they hold or have booked"}, listNodes),
		serve(a, operation.Operation{ID: "getNode", Method: http.MethodGet, Path: "/nodes/{id}", Tag: "capacity",
			Policy: auth.Viewer, Summary: "Read a node"}, getNode),
		serveOnce(a, haltNode("drain", "Drain a node: it takes no new work", (*verbs.Ledger).DrainNode),
			(*haltInput).halt, nil),
		serveOnce(a, resumeNode, (*act).target, nil),
		serveOnce(a, haltNode("quarantine",
			"Quarantine a node: its machine is kept for inspection, holders stay, no new work comes",
			(*verbs.Ledger).QuarantineNode), (*haltInput).halt, nil),
		serveChange(a, patchNode, func(in *patchNodeInput) (contract.PlannedNode, error) {
			version, err := in.parseIfMatch()
			return contract.PlannedNode{NodeID: in.ID, Version: version, NodePatch: in.Body}, err
		}, func(n contract.Node) int { return n.Version }),
	}
}

type patchNodeInput struct {
	ByID
	Match
	Body contract.NodePatch
}

var patchNode = operation.Change[contract.PlannedNode, node.Node, contract.Node]{
	Operation: operation.Operation{ID: "patchNode", Method: http.MethodPatch, Path: "/nodes/{id}", Tag: "capacity",
		Policy: auth.Operator, Summary: "Change the labels and taints of a node"},
	Plan: contract.PlanNode,
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b contract.PlannedNode) (node.Node, error) {
		var c ledger.NodeChange
		if b.Labels != nil {
			c.Labels = maps.Clone(*b.Labels)
		}
		if b.Taints != nil {
			c.Taints = append([]string{}, *b.Taints...)
		}
		return l.UpdateNode(ctx, actor, b.NodeID, b.Version, c)
	},
	Encode: func(v operation.Viewer, n node.Node) contract.Node { return encodeNode(v.Actor, n) },
}

// haltInput asks for a node to take no new work.
type haltInput struct {
	ByID
	Idempotency
	Body *contract.NodeHalt
}

// nodeHalt is a node that is to take no new work, and why.
type nodeHalt struct {
	ByID
	contract.NodeHalt
}

func (in *haltInput) halt() nodeHalt {
	out := nodeHalt{ByID: in.ByID}
	if in.Body != nil {
		out.Reason = strings.TrimSpace(in.Body.Reason)
	}
	return out
}

// haltNode is what operators do to a node that is to take no new work.
func haltNode(name, summary string, verb func(l *verbs.Ledger, ctx context.Context, actor ledger.Actor,
	nodeID, why string) (node.Node, error)) operation.Change[nodeHalt, node.Node, contract.Node] {
	return operation.Change[nodeHalt, node.Node, contract.Node]{
		Operation: operateNode(name, summary),
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b nodeHalt) (node.Node, error) {
			return verb(l, ctx, actor, b.ID, b.Reason)
		},
		Encode: func(v operation.Viewer, n node.Node) contract.Node { return encodeNode(v.Actor, n) },
	}
}

var resumeNode = operation.Change[ByID, node.Node, contract.Node]{
	Operation: operateNode("resume",
		"Take a node back into use: a draining one at once, a quarantined one after its health gate"),
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b ByID) (node.Node, error) {
		return l.ResumeNode(ctx, actor, b.ID)
	},
	Encode: func(v operation.Viewer, n node.Node) contract.Node { return encodeNode(v.Actor, n) },
}

// operateNode is what operators do to a node.
func operateNode(name, summary string) operation.Operation {
	return operation.Operation{ID: name + "Node", Method: http.MethodPost, Path: "/nodes/{id}/" + name, Tag: "capacity",
		Policy: auth.Operator, Summary: summary}
}

// NodeFilter narrows a list of nodes.
type NodeFilter struct {
	Pool  string   `query:"pool" maxLength:"64" doc:"Id or name."`
	State []string `query:"state"`
	All   bool     `query:"all"`
}

func nodeFilter(ctx context.Context, a *API, r ledger.Reader, f NodeFilter) (ledger.NodeFilter, error) {
	id, err := a.resolvePool(ctx, r, f.Pool)
	out := ledger.NodeFilter{PoolID: id, Live: !f.All && len(f.State) == 0}
	for _, s := range f.State {
		out.State = append(out.State, node.State(s))
	}
	return out, err
}

func listNodes(ctx context.Context, a *API, in *struct {
	Page
	NodeFilter
},
) (out *ListOut[contract.Node], err error) {
	actor := auth.From(ctx)
	a.refreshTelemetry(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		f, err := nodeFilter(ctx, a, r, in.NodeFilter)
		if err != nil {
			return err
		}
		sight := a.Ledger.Sight(actor.Scope())
		out, err = readPage(in.Page, "nod", func(p ledger.Page) ([]node.Node, error) { return sight.Nodes(r, f, p) },
			nodeID, func(n node.Node) contract.Node { return encodeNode(actor, n) })
		if err != nil {
			return err
		}
		troubles, err := a.Ledger.Troubles(r)
		for i := range out.Body.Items {
			out.Body.Items[i].Failing = encodeTrouble(actor, troubles.Of(out.Body.Items[i].ID))
			out.Body.Items[i].Daemon = encodeDaemon(a.Telemetry.Of(out.Body.Items[i].ID))
		}
		return err
	})
	return out, err
}

func getNode(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Node], error) {
	out, actor := &One[contract.Node]{}, auth.From(ctx)
	a.refreshTelemetry(ctx)
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		n, err := a.Ledger.Sight(actor.Scope()).Node(r, in.ID)
		if err != nil {
			return err
		}
		troubles, err := a.Ledger.Troubles(r)
		out.ETag, out.Body = formatETag(n.Version), encodeNode(actor, n)
		out.Body.Failing = encodeTrouble(actor, troubles.Of(n.ID))
		out.Body.Daemon = encodeDaemon(a.Telemetry.Of(n.ID))
		return err
	})
	return out, err
}

func nodeID(n node.Node) string { return n.ID }

// encodeNode shows where a machine is, and what it costs, only to operators.
func encodeNode(actor ledger.Actor, n node.Node) contract.Node {
	out := contract.Node{
		ID: n.ID, PoolID: n.PoolID, Slot: n.Slot, Generation: n.Generation, State: string(n.State()), Reason: n.Reason,
		GPUs: len(n.Devices), Simulated: n.Simulated, RequestedAt: n.RequestedAt.UTC(), BootingAt: n.BootingAt.UTC(),
		Kept: n.Kept(), Resuming: n.Quarantine.Resuming, QuarantinedAt: n.Quarantine.Since().UTC(),
		ReadyAt: n.ReadyAt.UTC(), RetiredAt: n.RetiredAt.UTC(), GoneAt: n.GoneAt.UTC(), Version: n.Version,
		Labels: n.Labels, Taints: n.Taints, HotUntil: n.Heat.HotUntil.UTC(),
	}
	if actor.Role == ledger.Operator {
		out.KeptReason = n.Quarantine.Why
		price := formatMoney(n.Offering.Price)
		out.Provisioner, out.Region, out.InstanceType, out.PricePerNodeHour = n.Offering.Provisioner, n.Offering.Region,
			n.Offering.Type, &price
		out.ProviderID, out.Address = n.ProviderID, n.Address
		if n.ProviderID != "" { // what has no machine does not end by itself
			out.ExpiresAt = n.ExpiresAt.UTC()
		}
	}
	return out
}
