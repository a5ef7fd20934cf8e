package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/reservation"
)

// MaxBatch is the most requests one batch may hold.
const MaxBatch = 10_000

// BatchItem is one request of a batch. One that is Invalid already is not tried.
type BatchItem struct {
	Request ReserveRequest
	Invalid error
}

// Outcome is what became of one request of a batch: a reservation, or why there
// is none (*InvalidError, *RefusedError, ErrNotTried, or what BatchItem said).
type Outcome struct {
	Reservation reservation.Reservation
	Err         error
}

// ReserveMany books a batch in one transaction, in the given order, each request
// deciding on what the ones before it left. One that is refused does not stop the
// others; when the transaction fails, none of them is there. Those for which
// Config.BatchTime leaves no time are not tried (ErrNotTried).
func (l Booking) ReserveMany(ctx context.Context, actor Actor, batch []BatchItem) ([]Outcome, error) {
	if len(batch) == 0 || len(batch) > MaxBatch {
		return nil, &InvalidError{Field: "items", Rule: fmt.Sprintf("must be between 1 and %d", MaxBatch)}
	}
	var outcomes []Outcome
	err := l.inGroupOf(ctx, actor, BatchLockHint(batch), len(batch), func(tx *groupTx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		deciding, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.BatchTime)
		defer cancel()
		outcomes, err = reserveBatch(tx, deciding, h, batch)
		return err
	})
	return outcomes, err
}

func reserveBatch(tx *groupTx, deciding context.Context, h *holding, batch []BatchItem) (outcomes []Outcome, err error) {
	outcomes = make([]Outcome, len(batch))
	defer tx.beginBatch()()
	var written backgroundWrite
	defer func() { err = errors.Join(err, written.waitForWrite()) }()
	for i, item := range batch {
		if i > 0 && deciding.Err() != nil {
			for ; i < len(batch); i++ {
				outcomes[i].Err = ErrNotTried
			}
			break
		}
		if outcomes[i], err = reserveItem(tx, h, item); err != nil {
			return nil, fmt.Errorf("booking item %d: %w", i, err)
		}
		if i%ahead == ahead-1 && len(batch) >= large && decidedFromMemory(batch[0].Request.Pool, batch[i+1:]) {
			if err := written.beginWrite(tx); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// Bounds of writing ahead: a batch of at least large requests has a transaction
// of its own, and its rows are written in parts of ahead, each while the next
// part is decided. Otherwise the database waits for the ledger, and then the
// ledger for the database.
const (
	large = 2000
	ahead = 1000
)

// decidedFromMemory reports whether the requests can be decided without asking the database,
// which is busy writing: promises in a pool that is at hand.
func decidedFromMemory(pool string, rest []BatchItem) bool {
	return !slices.ContainsFunc(rest, func(item BatchItem) bool {
		r := item.Request
		return r.Pool != pool || r.Pool == "" || r.isFlexible() || r.Class == reservation.Speculative
	})
}

// backgroundWrite is a part of a batch on its way to the database, in the background.
type backgroundWrite struct{ done chan error }

// beginWrite writes what the transaction has so far, after the part before.
func (w *backgroundWrite) beginWrite(tx *groupTx) error {
	if err := w.waitForWrite(); err != nil {
		return err
	}
	part := tx.change
	tx.change = Change{}
	for _, id := range sortedKeys(tx.pools) {
		tx.pools[id].writeAhead(&part)
	}
	done := make(chan error, 1)
	w.done = done
	go func() { done <- tx.port.Save(part) }()
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

// BatchLockHint says what a batch will lock, for Once: its pool, if it has one.
func BatchLockHint(batch []BatchItem) *LockHint {
	for _, item := range batch {
		if item.Request.Pool != batch[0].Request.Pool {
			return nil
		}
	}
	uses := batch[0].Request.lockHint()
	if uses != nil {
		uses.Alone = len(batch) >= large
	}
	return uses
}

// reserveItem books one of a batch. The error is a fault, not a refusal.
func reserveItem(tx *groupTx, h *holding, item BatchItem) (Outcome, error) {
	req := item.Request
	if item.Invalid != nil {
		return Outcome{Err: item.Invalid}, nil
	}
	if err := req.checkRequest(); err != nil {
		return Outcome{Err: err}, nil
	}
	pools, err := lockCandidates(tx, req.poolNeeds())
	if err == nil {
		var r reservation.Reservation
		if r, err = reserveFirst(tx, pools, h, req); err == nil {
			return Outcome{Reservation: r}, nil
		}
	}
	_, refused := errors.AsType[*RefusedError](err)
	_, invalid := errors.AsType[*InvalidError](err)
	if refused || invalid {
		tx.journalRefusal(err)
		return Outcome{Err: err}, nil
	}
	return Outcome{}, err
}
