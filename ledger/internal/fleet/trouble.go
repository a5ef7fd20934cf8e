package fleet

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// troublesome are the kinds of task whose failures are their provider's.
var troublesome = []string{ledger.TaskCreateNode, ledger.TaskCheckNode, ledger.TaskSweep,
	ledger.TaskObserve}

// ReadTroubles reads what fails again and again.
func ReadTroubles(r ledger.Reader) (ledger.Troubles, error) {
	failing, err := r.Failing(ledger.TroubleAfter)
	if err != nil {
		return nil, err
	}
	var all ledger.Troubles
	for _, t := range failing {
		if slices.Contains(troublesome, t.Kind) {
			all = append(all, ledger.Trouble{Kind: t.Kind, Subject: t.Subject, Count: t.Failures, At: t.FailedAt,
				Message: ledger.ClipText(t.LastError, 300)})
		}
	}
	return all, nil
}

// TellTrouble journals what a provider's trouble came to. Only operators see it.
func TellTrouble(tx *txn.Tx, t ledger.Task, what, message string) error {
	switch t.Kind {
	case ledger.TaskSweep, ledger.TaskObserve:
		tx.AddEvent(ledger.Event{Type: "provisioner." + what, Subject: t.Subject, Reason: "provider_failing",
			Message: message})
	case ledger.TaskCreateNode, ledger.TaskCheckNode:
		n, err := tx.Port.Node(t.Subject)
		if err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		tx.AddEvent(ledger.Event{Type: "node." + what, Subject: n.ID, PoolID: n.PoolID, Reason: "provider_failing",
			Message: message})
	}
	return nil
}
