package txn

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// RetryTask has a guarded run end, and run again after a while. failure is what went wrong
// with it; empty for nothing. Where it failed as often in a row as makes it a trouble, the
// journal tells of it, once.
func RetryTask(tx *Tx, g ledger.Guard, after time.Duration, failure string) error {
	tx.FailTask(g, tx.Now().Add(after), failure)
	if failure == "" {
		return nil
	}
	t, err := tx.Port.Task(g.TaskID)
	if err != nil {
		return fmt.Errorf("reading task: %w", err)
	}
	t.Failures, t.LastError = t.Failures+1, failure
	if t.Failures != ledger.TroubleAfter {
		return nil
	}
	return TellTrouble(tx, t, "failing", fmt.Sprintf("its provider failed %s in a row: %s",
		phrase.Count(t.Failures, "time"), ledger.ClipText(failure, 200)))
}

// TellTrouble journals what a provider's trouble came to. Only operators see it.
func TellTrouble(tx *Tx, t ledger.Task, what, message string) error {
	switch t.Kind {
	case ledger.TaskSweep, ledger.TaskObserve, ledger.TaskKeep:
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
