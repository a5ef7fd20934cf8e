package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Of sealing: how soon an event is sealed, and how many a seal covers at most.
const (
	sealEvery = 10 * time.Second
	sealMost  = 1000
)

// SealsKey is the one row that seals the journal.
const SealsKey = "seals"

// SealJournal seals what was added to the journal since the last seal, and has
// the claimed task run again: at once while there is more. Nobody who books waits
// for it: it reads settled events and adds one row. It returns the zero Seal when
// there was nothing to seal, and *JournalBehindError when seals are missing: then
// it seals nothing, for nobody shall take what was written anew for what was
// there (see WatchSeals).
func (l Journal) SealJournal(ctx context.Context, g ledger.Guard) (ledger.Seal, error) {
	var before ledger.Seal
	var events []ledger.Event
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if err = checkMark(l.Engine, r); err != nil {
			return err
		}
		if before, err = r.LastSeal(); err != nil {
			return err
		}
		events, err = r.Journal(before.Last, 0, sealMost)
		return err
	})
	if err != nil || l.Config.Seals == (ledger.SealKey{}) {
		return ledger.Seal{}, tellBehind(ctx, l.Engine, errOrKeyless(err))
	}
	made, newest := ledger.Seal{}, before
	var now time.Time
	err = l.Store.InTx(ctx, func(tx ledger.Tx) error {
		now = tx.Now()
		next := now.Add(sealEvery)
		if len(events) == sealMost {
			next = now
		}
		change := ledger.Change{Finished: []ledger.FinishedRun{{Guard: g, Next: next}}, Last: true}
		if len(events) > 0 {
			if made, err = l.Config.Seals.MakeSeal(before, events, now); err != nil {
				return err
			}
			newest = made
			change.Seals = []ledger.Seal{made}
		}
		return tx.Save(change)
	})
	if err != nil {
		return ledger.Seal{}, fmt.Errorf("sealing the journal: %w", err)
	}
	rememberSeal(l.Engine, newest, now)
	return made, nil
}

func errOrKeyless(err error) error {
	if err != nil {
		return fmt.Errorf("reading what is to be sealed: %w", err)
	}
	return &ledger.StateError{Subject: "the journal", State: "without a key for seals", Asked: "be sealed"}
}
