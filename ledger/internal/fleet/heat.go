package fleet

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// heatMatters reports whether the temperature that a daemon reports of its node changes where jobs start.
func heatMatters(tx *txn.Tx, n node.Node, celsius int) (bool, error) {
	scheduling := tx.Config.Scheduling.Now()
	if n.State() != node.Ready || n.Heat == (node.Heat{}) && celsius < scheduling.LeastWarm() {
		return false, nil
	}
	p, err := tx.Port.Pool(n.PoolID)
	if err != nil {
		return false, fmt.Errorf("reading the pool of node %s: %w", n.ID, err)
	}
	_, changed := n.Heat.After(celsius, scheduling.Of(p.Name).Heat, tx.Now())
	return changed, nil
}

// noteHeat keeps how hot a node is, and has the jobs of its pool looked at again where they may start elsewhere now.
func noteHeat(ctx context.Context, e *txn.Engine, nodeID string, celsius int) error {
	return onNode(ctx, e, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		rules := tx.Config.Scheduling.Now().Of(p.Pool.Name).Heat
		heat, changed := n.Heat.After(celsius, rules, tx.Now())
		if !changed || n.State() != node.Ready {
			return nil
		}
		was := n.Heat
		n.Heat = heat
		p.PutNode(n)
		if !heat.IsHot(tx.Now()) {
			return nil
		}
		if !was.IsHot(tx.Now()) {
			tx.AddEvent(ledger.Event{Type: "node.hot", Subject: n.ID, PoolID: p.Pool.ID, Reason: "heat",
				Message: fmt.Sprintf("%d °C: jobs start elsewhere until it has been below %d °C for %s", celsius,
					rules.HotFrom, rules.CoolDown)})
			tx.WakePlan(p.Pool.ID)
		}
		return nil
	})
}
