package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// editable are the states of a job of which nothing has begun.
var editable = []job.State{job.Pending, job.Held}

// EditJob changes what a job that waits asks for, if it still has the version that was read: ledger.ErrConflict. What
// it has waited counts as before, unless it is not to start yet. *ledger.StateError: it does not wait.
func (l Jobs) EditJob(ctx context.Context, actor ledger.Actor, id string, version int, e ledger.JobEdit) (
	out job.Job, err error) {
	if err := e.Check(); err != nil {
		return out, err
	}
	// A transaction of its own: in a shared one no change of another shows in the version.
	err = l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		seen, err := tx.Port.Job(actor.Scope(), id)
		if err != nil {
			return fmt.Errorf("reading job %s: %w", id, err)
		}
		may, err := readBounds(tx, []job.Job{seen}, e)
		if err != nil {
			return err
		}
		p, err := tx.LockPool(seen.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		j, err := txn.FindJob(tx, id)
		switch {
		case err != nil:
			return err
		case j.Version != version:
			return ledger.ErrConflict
		}
		if err := edit(tx, p, j, e, may); err != nil {
			return err
		}
		if out, err = txn.FindJob(tx, id); err == nil && len(tx.Change.Jobs) > 0 {
			out.Version++
		}
		return err
	})
	return out, err
}

// EditJobs is EditJob of the next jobs of a set, as they are. Those that do not wait stay as they are.
func (l Jobs) EditJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet, e ledger.JobEdit) (
	ledger.JobsChanged, error) {
	if err := e.Check(); err != nil {
		return ledger.JobsChanged{}, err
	}
	return l.changeSet(ctx, actor, s, ask{asked: toEdit, edit: &e, may: &bounds{}})
}

const toEdit = "edit it"

// edit changes a job in its transaction; nothing, where it is as it was to be.
func edit(tx *txn.Tx, p *txn.PoolTx, j job.Job, e ledger.JobEdit, may bounds) error {
	if !slices.Contains(editable, j.State()) {
		return &ledger.StateError{Subject: j.ID, State: string(j.State()), Asked: toEdit}
	}
	next := e.Of(j)
	what := e.Describe(j, next, tx.Now())
	if what == "" {
		return nil
	}
	if err := errors.Join(checkSharedName(j, next), ledger.CheckNotBefore(next.NotBefore),
		checkReservedStay(j, next), booking.CheckLimits(p, next)); err != nil {
		return err
	}
	if err := may.check(tx, p, j, next); err != nil {
		return err
	}
	if next.Priority != j.Priority {
		if err := checkPriority(tx, p, next); err != nil {
			return err
		}
	}
	if !next.NotBefore.Equal(j.NotBefore) {
		next = next.Delay(next.NotBefore, tx.Now())
	}
	txn.PutJob(tx, next)
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job.edited", Subject: j.ID, PoolID: j.PoolID,
		Message: what})
	tx.WakePlan(p.Pool.ID)
	return nil
}

// checkSharedName refuses to name one job of an array, whose jobs are found by the name that they share.
func checkSharedName(was, next job.Job) error {
	if was.Array.ID == "" || was.Name == next.Name {
		return nil
	}
	return &ledger.InvalidError{Field: "name", Rule: "must stay: the jobs of an array share it, and some may have begun"}
}

// checkReservedStay refuses to move a job that runs in a reservation, whose window it has.
func checkReservedStay(was, next job.Job) error {
	if was.Reservation == "" {
		return nil
	}
	field := ""
	switch {
	case !was.NotBefore.Equal(next.NotBefore):
		field = "not_before"
	case was.MaxRuntime != next.MaxRuntime:
		field = "max_runtime_seconds"
	default:
		return nil
	}
	return &ledger.InvalidError{Field: field, Rule: "must stay: the job runs in reservation " + was.Reservation,
		Fix: "cancel it, and submit it without the reservation"}
}
