package work

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ReportWorks tells the journal, once, that a task which was a trouble works.
func (l Tasks) ReportWorks(ctx context.Context, t ledger.Task) error {
	if t.Failures < ledger.TroubleAfter {
		return nil
	}
	return l.InOwnTx(ctx, ledger.SystemActor("worker"), func(tx *txn.Tx) error {
		return fleet.TellTrouble(tx, t, "works_again", fmt.Sprintf("its provider works again after %s in a row",
			phrase.Count(t.Failures, "failure")))
	})
}
