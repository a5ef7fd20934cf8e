package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// UpdateNode changes what operators say of a node, its labels and taints, if it still has the version. They
// decide where jobs start from then on; what runs there goes on.
func (l Jobs) UpdateNode(ctx context.Context, actor ledger.Actor, nodeID string, version int, c ledger.NodeChange) (
	node.Node, error) {
	if err := c.Check(); err != nil {
		return node.Node{}, err
	}
	var out node.Node
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		p, n, err := fleet.LockPoolOfNode(tx, nodeID)
		switch {
		case err != nil:
			return err
		case node.Machine.Terminal(n.State()):
			return &ledger.StateError{Subject: n.ID, State: string(n.State()), Asked: "label it"}
		case n.Version != version:
			return ledger.ErrConflict
		}
		out = c.ApplyTo(n)
		p.PutNode(out)
		tx.AddEvent(ledger.Event{Type: "node.labelled", Subject: n.ID, PoolID: p.Pool.ID, Reason: "asked",
			Message: describeLabels(out)})
		tx.WakePlan(p.Pool.ID)
		return nil
	})
	out.Version++
	return out, err
}

// describeLabels is what operators say of a node, in words.
func describeLabels(n node.Node) string {
	labels := make([]string, 0, len(n.Labels))
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		labels = append(labels, key+"="+n.Labels[key])
	}
	return ledger.ClipText(fmt.Sprintf("labels: %s; taints: %s", orNone(labels), orNone(n.Taints)), 300)
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
