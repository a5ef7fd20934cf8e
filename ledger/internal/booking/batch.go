package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ReserveMany books a batch in one transaction, in the given order, each request
// deciding on what the ones before it left. One that is refused does not stop the
// others; when the transaction fails, none of them is there. Those for which
// Config.BatchTime leaves no time are not tried (ErrNotTried).
func (l Booking) ReserveMany(ctx context.Context, actor ledger.Actor, batch []ledger.BatchItem) (
	[]ledger.Outcome, error) {
	if len(batch) == 0 || len(batch) > ledger.MaxBatch {
		return nil, &ledger.InvalidError{Field: "items", Rule: fmt.Sprintf("must be between 1 and %d", ledger.MaxBatch)}
	}
	var outcomes []ledger.Outcome
	err := l.InGroupOf(ctx, actor, ledger.BatchLockHint(batch), len(batch), func(tx *txn.Tx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		deciding, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Config.BatchTime)
		defer cancel()
		outcomes, err = reserveBatch(deciding, tx, h, batch)
		return err
	})
	return outcomes, err
}

func reserveBatch(deciding context.Context, tx *txn.Tx, h *holding, batch []ledger.BatchItem) (
	outcomes []ledger.Outcome, err error) {
	outcomes = make([]ledger.Outcome, len(batch))
	defer tx.BeginBatch()()
	var written backgroundWrite
	defer func() { err = errors.Join(err, written.waitForWrite()) }()
	for i, item := range batch {
		if i > 0 && deciding.Err() != nil {
			for ; i < len(batch); i++ {
				outcomes[i].Err = ledger.ErrNotTried
			}
			break
		}
		if outcomes[i], err = reserveItem(tx, h, item); err != nil {
			return nil, fmt.Errorf("booking item %d: %w", i, err)
		}
		if i%ledger.Ahead == ledger.Ahead-1 && len(batch) >= ledger.Large &&
			decidedFromMemory(batch[0].Request.Pool, batch[i+1:]) {
			if err := written.beginWrite(tx); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// decidedFromMemory reports whether the requests can be decided without asking the database,
// which is busy writing: promises in a pool that is at hand.
func decidedFromMemory(pool string, rest []ledger.BatchItem) bool {
	return !slices.ContainsFunc(rest, func(item ledger.BatchItem) bool {
		r := item.Request
		return r.Pool != pool || r.Pool == "" || r.IsFlexible() || r.Class == reservation.Speculative
	})
}

// backgroundWrite is a part of a batch on its way to the database, in the background.
type backgroundWrite struct{ done chan error }

// beginWrite writes what the transaction has so far, after the part before.
func (w *backgroundWrite) beginWrite(tx *txn.Tx) error {
	if err := w.waitForWrite(); err != nil {
		return err
	}
	part := tx.Change
	tx.Change = ledger.Change{}
	for _, id := range txn.SortedKeys(tx.Pools) {
		tx.Pools[id].WriteAhead(&part)
	}
	done := make(chan error, 1)
	w.done = done
	go func() { done <- tx.Port.Save(part) }()
	return nil
}

// waitForWrite returns when nothing is being written.
func (w *backgroundWrite) waitForWrite() error {
	if w.done == nil {
		return nil
	}
	err := <-w.done
	w.done = nil
	return err
}

// reserveItem books one of a batch. The error is a fault, not a refusal.
func reserveItem(tx *txn.Tx, h *holding, item ledger.BatchItem) (ledger.Outcome, error) {
	req := item.Request
	if item.Invalid != nil {
		return ledger.Outcome{Err: item.Invalid}, nil
	}
	if err := req.Check(); err != nil {
		return ledger.Outcome{Err: err}, nil
	}
	pools, err := lockCandidates(tx, req.PoolNeeds())
	if err == nil {
		var r reservation.Reservation
		if r, err = reserveFirst(tx, pools, h, req); err == nil {
			return ledger.Outcome{Reservation: r}, nil
		}
	}
	_, refused := errors.AsType[*ledger.RefusedError](err)
	_, invalid := errors.AsType[*ledger.InvalidError](err)
	if refused || invalid {
		tx.JournalRefusal(err)
		return ledger.Outcome{Err: err}, nil
	}
	return ledger.Outcome{}, err
}
