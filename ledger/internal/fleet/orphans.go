package fleet

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ReportOrphan writes down what is known of machines that no node stands for. A
// provider that does not say when one was born is believed to have made it now.
// Repeated, it changes nothing.
func (l Fleet) ReportOrphan(ctx context.Context, orphans ...ledger.Orphan) error {
	return l.InGroup(ctx, ledger.SystemActor("reconcile"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		for _, o := range orphans {
			if o.BilledFrom.IsZero() {
				o.BilledFrom = tx.Now()
			}
			tx.Change.Orphans = append(tx.Change.Orphans, o)
		}
		return nil
	})
}

// ReportOrphanEnded journals that the end of a machine that no node stands for
// was asked for.
func (l Fleet) ReportOrphanEnded(ctx context.Context, provisioner, machine, nodeID string) error {
	return l.InGroup(ctx, ledger.SystemActor("reconcile"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.AddEvent(ledger.Event{Type: "sweep.orphan_terminated", Subject: machine, Reason: "no_node",
			Message: fmt.Sprintf("%s of %s, tagged for %s, belongs to no live node", ledger.ClipText(machine, 80),
				provisioner,
				ledger.ClipText(nodeID, 40))})
		return nil
	})
}
