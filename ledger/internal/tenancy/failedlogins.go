package tenancy

import (
	"context"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// RecordFailedLogins writes failed sign-ins into the journal, where operators
// alone see them: they belong to no organization.
func (l Tenancy) RecordFailedLogins(ctx context.Context, failed []ledger.FailedLogin) error {
	return l.InGroup(ctx, ledger.SystemActor("api"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		for _, f := range failed {
			tx.AddEvent(ledger.Event{Type: "login.failed", Subject: f.EventSubject(), Reason: f.Door,
				Message: f.EventText()})
		}
		return nil
	})
}
