package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// editable are the states of the jobs that an edit may change.
func editable(e ledger.JobEdit) []job.State {
	waits := []job.State{job.Pending, job.Held}
	if e.SuitsRunning() {
		return append(waits, job.Scheduled, job.Running)
	}
	return waits
}

// EditJob changes what a job asks for, if it still has the version that was read: ledger.ErrConflict. What it has
// waited counts as before, unless it is not to start yet. *ledger.StateError: it is over, or ends;
// *ledger.InvalidError: of one that has begun this must stay.
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
		pools, err := lockPoolsOf(tx, []job.Job{seen}, &e)
		if err != nil {
			return err
		}
		j, err := txn.FindJob(tx, id)
		switch {
		case err != nil:
			return err
		case j.Version != version || j.PoolID != seen.PoolID:
			return ledger.ErrConflict
		}
		if err := edit(tx, pools[j.PoolID], j, e, may); err != nil {
			return err
		}
		if out, err = txn.FindJob(tx, id); err == nil && len(tx.Change.Jobs) > 0 {
			out.Version++
		}
		return err
	})
	return out, err
}

// EditJobs is EditJob of the next jobs of a set, as they are. Those that it cannot change stay as they are.
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
	if err := checkEditable(j, e); err != nil {
		return err
	}
	next := e.Of(j)
	priorities := tx.Config.Scheduling.Now().Of("").Priorities
	if err := priorities.CheckLeaving(next.Priority, e.Preemptible); err != nil {
		return err
	}
	if next.Priority != j.Priority {
		next.Preemptible = priorities.AllowsLeaving(next)
	}
	to, err := poolOfEdit(tx, p, e)
	if err != nil {
		return err
	}
	if next.PoolID = to.Pool.ID; next.PoolID != j.PoolID {
		next.Where.Pools = nil // it was said where
	}
	what := e.Describe(j, next, tx.Now())
	if what == "" {
		return nil
	}
	if err := errors.Join(checkSharedName(j, next), ledger.CheckNotBefore(next.NotBefore), checkReservedStay(j, next),
		checkPoolOf(tx, to, j, next)); err != nil {
		return err
	}
	if next.MaxRuntime != j.MaxRuntime {
		if err := booking.CheckLimits(to, next); err != nil {
			return err
		}
	}
	if err := may.check(tx, to, j, next); err != nil {
		return err
	}
	if next.Priority != j.Priority || next.PoolID != j.PoolID {
		if err := checkPriority(tx, to, next); err != nil {
			return err
		}
	}
	if !next.NotBefore.Equal(j.NotBefore) {
		next = next.Delay(next.NotBefore, tx.Now())
	}
	txn.PutJob(tx, next)
	forgetStart(tx, next)
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job.edited", Subject: j.ID, PoolID: next.PoolID,
		Message: what})
	tx.WakePlan(p.Pool.ID)
	tx.WakePlan(next.PoolID)
	return nil
}

// checkEditable refuses to change what cannot be changed of a job in its state.
func checkEditable(j job.Job, e ledger.JobEdit) error {
	if j.Ending.Is() {
		return &ledger.StateError{Subject: j.ID, State: "ending", Asked: toEdit}
	}
	if slices.Contains(editable(e), j.State()) {
		return nil
	}
	if !j.HasGPUs() {
		return &ledger.StateError{Subject: j.ID, State: string(j.State()), Asked: toEdit}
	}
	field, why := "max_runtime_seconds", "its nodes end it by the limit with which it began"
	switch {
	case e.Pool != nil:
		field, why = "pool", "it is where it is"
	case e.NotBefore != nil:
		field, why = "not_before", "it has begun"
	}
	return &ledger.InvalidError{Field: field, Rule: "must stay of a job that has GPUs: " + why,
		Fix: "end what it runs by forewarm jobs requeue --hold " + j.ID + ", and then edit and release it"}
}

// poolOfEdit is the pool in which an edited job waits, which is locked.
func poolOfEdit(tx *txn.Tx, p *txn.PoolTx, e ledger.JobEdit) (*txn.PoolTx, error) {
	if e.Pool == nil {
		return p, nil
	}
	to, err := tx.LivePool(*e.Pool)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, tenancy.ErrNoSuchPool(*e.Pool)
	}
	return to, err
}

// checkPoolOf refuses a pool that could not serve the job which is to wait there.
func checkPoolOf(tx *txn.Tx, to *txn.PoolTx, was, next job.Job) error {
	switch {
	case was.PoolID == next.PoolID:
		return nil
	case was.Reservation != "":
		return &ledger.InvalidError{Field: "pool", Rule: "must stay: the job runs in reservation " + was.Reservation,
			Fix: "cancel it, and submit it without the reservation"}
	}
	return errors.Join(booking.CheckPool(tx, to, next), checkServed(tx, to), checkRoom(tx, to, next.OrganizationID, 1))
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
