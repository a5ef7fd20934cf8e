package fleet

import (
	"context"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// noteIsolation keeps how well a node keeps holders apart, and has the jobs of its pool looked at again: it decides
// whose may start there.
func noteIsolation(ctx context.Context, e *txn.Engine, nodeID string, is capacity.Isolation) error {
	return onNode(ctx, e, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if n.Isolation == is || node.Machine.Terminal(n.State()) {
			return nil
		}
		mixed := n.Isolation.Mixes(p.Pool.Isolation)
		n.Isolation = is
		if p.PutNode(n); is.Mixes(p.Pool.Isolation) != mixed {
			tx.WakePlan(p.Pool.ID)
		}
		return nil
	})
}
