package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ReportNotice takes a ready node out of the way of new work because its
// provider announced its end, or that it is failing: what is promised on it is
// healed elsewhere, who works on it is told until when, and it is removed once
// it is empty. A booting one is given up like an unfit one. Repeated, it changes
// nothing.
func (l Fleet) ReportNotice(ctx context.Context, g ledger.Guard, nodeID string, notice ledger.Notice) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		tx.WakePlan(p.Pool.ID)
		switch n.State() {
		case node.Booting:
			return giveUpBoot(tx, p, n, g, notice.Kind)
		case node.Ready:
			if _, err := tx.StepNode(p, n, node.Drain, notice.Kind, notice.Text()); err != nil {
				return err
			}
			tellHolders(tx, p, n, notice.Kind, fmt.Sprintf("node %s: %s", n.ID, notice.Text()))
		}
		tx.FinishTask(g, tx.Now().Add(l.Config.CheckEvery))
		return nil
	})
}

// kindFaults are faults that a machine has because all of its kind have them:
// buying another one mends nothing.
var kindFaults = map[string]bool{"gpu_model": true, "gpu_count": true, "gpu_memory": true, ledger.ReasonOldDriver: true}

// giveUpBoot removes a booting node, which counts against its source like a
// refusal.
func giveUpBoot(tx *txn.Tx, p *txn.PoolTx, n node.Node, g ledger.Guard, reason string) error {
	n, err := tx.StepNode(p, n, node.Retire, reason, "")
	if err != nil {
		return err
	}
	tx.AddTask(ledger.TaskDeleteNode, n.ID, tx.Now())
	if !kindFaults[reason] {
		noteFailedBoot(tx, p, n, tx.Config.StockOut)
	} else if noteUnfit(tx, p, n, reason) {
		tx.AddEvent(ledger.Event{Type: "pool.stopped", Subject: p.Pool.ID, PoolID: p.Pool.ID, Reason: reason,
			Message: fmt.Sprintf("no more machines are requested from %s: two in a row did not pass the health gate "+
				"(%s); any change by forewarm pools edit %s resumes the requests", n.Offering.Provisioner, reason,
				p.Pool.Name)})
	}
	tx.FinishTask(g, time.Time{})
	return nil
}

// Renewal returns until when the machine of a node should live now, and whether
// that has to be said to its provider: half of its time is over.
func (l Fleet) Renewal(n node.Node, now time.Time) (until time.Time, due bool) {
	if l.Config.DeadMan < 0 || n.ExpiresAt.IsZero() || n.ExpiresAt.Sub(now) > l.Config.DeadMan/2 {
		return time.Time{}, false
	}
	return now.Add(l.Config.DeadMan), true
}

// ReportRenewed stores until when a node's machine lives unless it is renewed
// again.
func (l Fleet) ReportRenewed(ctx context.Context, nodeID string, until time.Time) error {
	return onNode(ctx, l.Engine, nodeID, func(_ *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if !node.Machine.Terminal(n.State()) && until.After(n.ExpiresAt) {
			n.ExpiresAt = until
			p.PutNode(n)
		}
		return nil
	})
}
