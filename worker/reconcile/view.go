package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// needs is the task that each state of a node calls for. A node in any other
// state waits for the planner or is over.
var needs = map[node.State]string{
	node.Requested:      ledger.TaskCreateNode,
	node.Provisioning:   ledger.TaskCreateNode,
	node.Booting:        ledger.TaskCheckNode,
	node.Ready:          ledger.TaskCheckNode,
	node.Draining:       ledger.TaskCheckNode,
	node.Quarantined:    ledger.TaskCheckNode,
	node.Deprovisioning: ledger.TaskDeleteNode,
	node.NeedsAttention: ledger.TaskDeleteNode,
}

// view is one provisioner's part of the ledger at one moment.
type view struct {
	now       time.Time
	nodes     map[string]node.Node // that are not over, by id
	neglected []node.Node          // of them, those without the task that their state needs
	// recovering says that a pool of the provisioner only reconciles: nothing is
	// ended.
	recovering bool
}

const pageSize = 500

func (s *Sweeper) readView(ctx context.Context, provisioner string) (view, error) {
	var v view
	err := s.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		v = view{now: r.Now(), nodes: map[string]node.Node{}}
		filter := ledger.NodeFilter{Provisioner: provisioner, Live: true}
		for page := (ledger.Page{Limit: pageSize}); ; {
			nodes, err := r.Nodes(filter, page)
			if err != nil {
				return err
			}
			if err := v.addNodes(r, nodes); err != nil {
				return err
			}
			if len(nodes) < pageSize {
				return nil
			}
			page.After = nodes[len(nodes)-1].ID
		}
	})
	if err != nil {
		return view{}, fmt.Errorf("reading the nodes of %s: %w", provisioner, err)
	}
	return v, nil
}

// isRecovering reports whether any pool that may have machines of the provisioner
// only reconciles.
func (s *Sweeper) isRecovering(ctx context.Context, provisioner string) (found bool, err error) {
	err = s.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		pools, err := r.Pools(ledger.Page{})
		for _, p := range pools {
			for _, source := range p.Pool.Offerings() {
				found = found || p.Recovery.Active() && source.Provisioner == provisioner
			}
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("reading what recovers: %w", err)
	}
	return found, nil
}

func (v *view) addNodes(r ledger.Reader, nodes []node.Node) error {
	for _, n := range nodes {
		v.nodes[n.ID] = n
		kind, needed := needs[n.State()]
		if !needed {
			continue
		}
		pending, err := r.Pending(kind, n.ID)
		if err != nil {
			return err
		}
		if !pending {
			v.neglected = append(v.neglected, n)
		}
	}
	return nil
}

// emitLostTasks asks for lost work again. The check of a node whose machine is not listed
// finds out why; the sweep concludes nothing about it.
func (s *Sweeper) emitLostTasks(ctx context.Context, neglected []node.Node) (emitted int, err error) {
	for _, n := range neglected {
		kind := needs[n.State()]
		if err := s.ledger.EmitNodeTask(ctx, n.ID, kind); err != nil {
			return emitted, fmt.Errorf("asking for %s of node %s again: %w", kind, n.ID, err)
		}
		s.cfg.Logger.WarnContext(ctx, "a node had nobody to look after it", "node", n.ID, "task", kind)
		emitted++
	}
	return emitted, nil
}
