package ledger

import (
	"context"
	"fmt"
	"time"
)

// Of sealing: how soon an event is sealed, and how many a seal covers at most.
const (
	sealEvery = 10 * time.Second
	sealMost  = 1000
)

// sealsKey is the one row that seals the journal.
const sealsKey = "seals"

// SealJournal seals what was added to the journal since the last seal, and has
// the claimed task run again: at once while there is more. Nobody who books waits
// for it: it reads settled events and adds one row. It returns the zero Seal when
// there was nothing to seal, and *JournalBehindError when seals are missing: then
// it seals nothing, for nobody shall take what was written anew for what was
// there (see WatchSeals).
func (l Journal) SealJournal(ctx context.Context, g Guard) (Seal, error) {
	var before Seal
	var events []Event
	err := l.store.Read(ctx, func(r Reader) (err error) {
		if err = checkMark(l.engine, r); err != nil {
			return err
		}
		if before, err = r.LastSeal(); err != nil {
			return err
		}
		events, err = r.Journal(before.Last, 0, sealMost)
		return err
	})
	if err != nil || l.cfg.Seals == (SealKey{}) {
		return Seal{}, tellBehind(ctx, l.engine, errOrKeyless(err))
	}
	made, newest := Seal{}, before
	var now time.Time
	err = l.store.InTx(ctx, func(tx Tx) error {
		now = tx.Now()
		next := now.Add(sealEvery)
		if len(events) == sealMost {
			next = now
		}
		if len(events) > 0 {
			if made, err = l.cfg.Seals.makeSeal(before, events, now); err != nil {
				return err
			}
			newest = made
			if err := tx.Save(Change{Seals: []Seal{made}}); err != nil {
				return err
			}
		}
		return tx.Finish(g, next, "")
	})
	if err != nil {
		return Seal{}, fmt.Errorf("sealing the journal: %w", err)
	}
	rememberSeal(l.engine, newest, now)
	return made, nil
}

func errOrKeyless(err error) error {
	if err != nil {
		return fmt.Errorf("reading what is to be sealed: %w", err)
	}
	return &StateError{Subject: "the journal", State: "without a key for seals", Asked: "be sealed"}
}
