package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
)

// Notice is what a provider announced of a machine.
type Notice struct {
	Kind    string    // a code: interruption, expiring, degraded
	At      time.Time // when it comes true; zero where the provider does not say
	Message string    // the provider's own words
}

// ReportNotice takes a ready node out of the way of new work because its
// provider announced its end, or that it is failing: what is promised on it is
// healed elsewhere, who works on it is told until when, and it is removed once
// it is empty. A booting one is given up like an unfit one. Repeated, it changes
// nothing.
func (l Fleet) ReportNotice(ctx context.Context, g Guard, nodeID string, notice Notice) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		tx.wakePlan(p.Pool.ID)
		switch n.State() {
		case node.Booting:
			return giveUpBoot(tx, p, n, g, notice.Kind)
		case node.Ready:
			if _, err := tx.stepNode(p, n, node.Drain, notice.Kind, notice.noticeText()); err != nil {
				return err
			}
			warnHolders(tx, p, n, notice)
		}
		return tx.port.Finish(g, tx.now().Add(l.cfg.CheckEvery), "")
	})
}

// warnHolders tells everybody who works on the node.
func warnHolders(tx *groupTx, p *poolTx, n node.Node, notice Notice) {
	for a := range p.allocations.allRows() {
		if a.State() != allocation.Active {
			continue
		}
		for _, slot := range a.Slots {
			if slot == n.Slot {
				tx.addEvent(Event{OrganizationID: a.OrganizationID, Type: "allocation.warned", Subject: a.ID,
					PoolID: p.Pool.ID,
					Reason: notice.Kind, Message: fmt.Sprintf("node %s: %s", n.ID, notice.noticeText())})
			}
		}
	}
}

func (n Notice) noticeText() string {
	when := "at a time that its provider does not say"
	if !n.At.IsZero() {
		when = "at " + formatTime(n.At)
	}
	switch n.Kind {
	case "interruption":
		return "its provider takes it back " + when
	case "expiring":
		return "the supply that it belongs to ends " + when
	default:
		return "its provider says that it is failing"
	}
}

// kindFaults are faults that a machine has because all of its kind have them:
// buying another one mends nothing.
var kindFaults = map[string]bool{"gpu_model": true, "gpu_count": true, "gpu_memory": true}

// giveUpBoot removes a booting node, which counts against its source like a
// refusal.
func giveUpBoot(tx *groupTx, p *poolTx, n node.Node, g Guard, reason string) error {
	n, err := tx.stepNode(p, n, node.Retire, reason, "")
	if err != nil {
		return err
	}
	tx.addTask(TaskDeleteNode, n.ID, tx.now())
	if !kindFaults[reason] {
		noteFailedBoot(tx, p, n, tx.cfg.StockOut)
	} else if noteUnfit(tx, p, n, reason) {
		tx.addEvent(Event{Type: "pool.stopped", Subject: p.Pool.ID, PoolID: p.Pool.ID, Reason: reason,
			Message: fmt.Sprintf("no more machines are asked of %s: two in a row did not pass the health gate (%s); "+
				"forewarm pools edit %s, with any change, has it asked again", n.Offering.Provisioner, reason,
				p.Pool.Name)})
	}
	return tx.port.Finish(g, time.Time{}, "")
}

// Renewal returns until when the machine of a node should live now, and whether
// that has to be said to its provider: half of its time is over.
func (l Fleet) Renewal(n node.Node, now time.Time) (until time.Time, due bool) {
	if l.cfg.DeadMan < 0 || n.ExpiresAt.IsZero() || n.ExpiresAt.Sub(now) > l.cfg.DeadMan/2 {
		return time.Time{}, false
	}
	return now.Add(l.cfg.DeadMan), true
}

// ReportRenewed stores until when a node's machine lives unless it is renewed
// again.
func (l Fleet) ReportRenewed(ctx context.Context, nodeID string, until time.Time) error {
	return onNode(ctx, l.engine, nodeID, func(_ *groupTx, p *poolTx, n node.Node) error {
		if !node.Machine.Terminal(n.State()) && until.After(n.ExpiresAt) {
			n.ExpiresAt = until
			p.putNode(n)
		}
		return nil
	})
}
