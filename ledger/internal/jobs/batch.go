package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// added counts the jobs that a batch has put into the queues of pools, by their ids.
type added map[string]int

// SubmitMany is SubmitJobs of each submission of a batch, in one transaction and in the given order. One that is
// refused does not stop the others; when the transaction fails, none of them is there. Those for which
// Config.BatchTime leaves no time are not tried (ErrNotTried). *ledger.InvalidError: the batch itself is too large.
func (l Jobs) SubmitMany(ctx context.Context, actor ledger.Actor, batch []ledger.JobItem) ([]ledger.JobOutcome, error) {
	if err := ledger.CheckJobBatch(batch); err != nil {
		return nil, err
	}
	var outcomes []ledger.JobOutcome
	err := l.InGroupOf(ctx, actor, ledger.JobBatchLockHint(batch), len(batch), func(tx *txn.Tx) error {
		_, err := tx.Actor.BookingOrganization()
		if err != nil {
			return err
		}
		deciding, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Config.BatchTime)
		defer cancel()
		outcomes, err = submitBatch(deciding, tx, batch)
		return err
	})
	for _, o := range outcomes {
		for i := range o.Jobs {
			o.Jobs[i].Version = 1
		}
	}
	return outcomes, err
}

func submitBatch(deciding context.Context, tx *txn.Tx, batch []ledger.JobItem) ([]ledger.JobOutcome, error) {
	outcomes := make([]ledger.JobOutcome, len(batch))
	defer tx.BeginBatch()()
	before := added{}
	for i, item := range batch {
		if i > 0 && deciding.Err() != nil {
			outcomes[i].Err = ledger.ErrNotTried
			continue
		}
		var err error
		if outcomes[i], err = submitItem(tx, item, before); err != nil {
			return nil, fmt.Errorf("submitting item %d: %w", i, err)
		}
		for _, j := range outcomes[i].Jobs {
			before[j.PoolID]++
		}
	}
	return outcomes, nil
}

// submitItem submits one of a batch. Of one that is refused nothing stays, such as that it counted for the rate. The
// error is a fault, not a refusal.
func submitItem(tx *txn.Tx, item ledger.JobItem, before added) (out ledger.JobOutcome, err error) {
	if item.Invalid != nil {
		return ledger.JobOutcome{Err: item.Invalid}, nil
	}
	if err := item.Request.Check(); err != nil {
		return ledger.JobOutcome{Err: err}, nil
	}
	err = tx.RunVerb(tx.Actor, func(tx *txn.Tx) (err error) {
		out.Jobs, err = submitJobs(tx, item.Request, before)
		return err
	})
	if err != nil && refusesItem(err) {
		tx.JournalRefusal(err)
		return ledger.JobOutcome{Err: err}, nil
	}
	return out, err
}

// refusesItem reports whether an error says that a submission cannot be, and not that nobody knows.
func refusesItem(err error) bool {
	return is[*ledger.RefusedError](err) || is[*ledger.InvalidError](err) || is[*ledger.QueueFullError](err) ||
		is[*ledger.SubmissionRateError](err) || is[*ledger.PriorityError](err) || is[*ledger.StateError](err) ||
		is[*ledger.ObservedPoolError](err) || is[*ledger.ShareTakenError](err) || errors.Is(err, ledger.ErrNotFound) ||
		errors.Is(err, ledger.ErrDenied)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
