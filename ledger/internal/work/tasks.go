package work

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/journal"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Dispatch marks up to limit due tasks as sent and returns them for a queue.
// What is lost on the way is due again after window. While nothing is due it only looks:
// it is asked many times a second, and a transaction that finds nothing costs ten times
// as much.
func (l Tasks) Dispatch(ctx context.Context, limit int, window time.Duration) (tasks []ledger.Task, err error) {
	if due, err := l.Store.TasksDue(ctx); err == nil && !due {
		return nil, nil
	}
	err = l.Store.InTx(ctx, func(tx ledger.Tx) error {
		tasks, err = tx.Dispatch(limit, window)
		return err
	})
	return tasks, err
}

// NextTask is when the first waiting task is due; zero means that none waits.
func (l Tasks) NextTask(ctx context.Context) (at time.Time, err error) {
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		at, err = r.NextTask()
		return err
	})
	return at, err
}

// UntilNextTask is how long it takes until the first waiting task is due; false means
// that none waits.
func (l Tasks) UntilNextTask(ctx context.Context) (waits bool, left time.Duration, err error) {
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		at, err := r.NextTask()
		waits, left = !at.IsZero(), at.Sub(r.Now())
		return err
	})
	return waits, left, err
}

// Reap makes tasks whose worker fell silent ready again.
func (l Tasks) Reap(ctx context.Context) (n int, err error) {
	err = l.Store.InTx(ctx, func(tx ledger.Tx) error {
		n, err = tx.Reap()
		return err
	})
	return n, err
}

// ClaimTask gives one attempt of a task to the caller for the lease. ErrFenced
// means that the message was late or a duplicate, and must be dropped.
func (l Tasks) ClaimTask(ctx context.Context, id string, attempt int, lease time.Duration) (t ledger.Task, err error) {
	err = l.Store.InTx(ctx, func(tx ledger.Tx) error {
		t, err = tx.ClaimTask(id, attempt, lease)
		return err
	})
	return t, err
}

// ExtendTask prolongs the lease of a claimed task.
func (l Tasks) ExtendTask(ctx context.Context, g ledger.Guard, lease time.Duration) error {
	return l.Store.InTx(ctx, func(tx ledger.Tx) error { return tx.Extend(g, lease) })
}

// RetryTask has a claimed task run again after a while. Where it failed as often in
// a row as makes it a trouble, the journal tells of it, once.
func (l Tasks) RetryTask(ctx context.Context, g ledger.Guard, after time.Duration, failure string) error {
	if failure == "" {
		return fleet.RetryTask(ctx, l.Engine, g, after, "")
	}
	return l.InGroup(ctx, ledger.SystemActor("worker"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		return txn.RetryTask(tx, g, after, failure)
	})
}

// FinishTask ends a claimed task; a keyed one sleeps until it is woken.
func (l Tasks) FinishTask(ctx context.Context, g ledger.Guard) error {
	return fleet.FinishTask(ctx, l.Engine, g)
}

// EnsureSweep has a provisioner's list compared with the ledger again and again.
func (l Tasks) EnsureSweep(ctx context.Context, provisioner string) error {
	return l.InGroup(ctx, ledger.SystemActor("worker"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.AddKeyedTask(txn.SweepKey(provisioner), ledger.TaskSweep, provisioner)
		tx.AddKeyedTask(txn.SchedulesKey, ledger.TaskSchedules, "all")
		if l.Config.Seals != (ledger.SealKey{}) {
			tx.AddKeyedTask(journal.SealsKey, ledger.TaskSeal, "journal")
		}
		return nil
	})
}

// EnsureObserving has a provisioner's cluster looked at, and its warm nodes kept, again and
// again. They are tasks of their own: nodes are kept though looks fail, or take long.
func (l Tasks) EnsureObserving(ctx context.Context, provisioner string) error {
	return l.InGroup(ctx, ledger.SystemActor("worker"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.AddKeyedTask(txn.ObserveKey(provisioner), ledger.TaskObserve, provisioner)
		tx.AddKeyedTask(txn.KeepKey(provisioner), ledger.TaskKeep, provisioner)
		return nil
	})
}

// SweepEvery is how long a finished sweep sleeps.
func (l Tasks) SweepEvery() time.Duration { return l.Config.SweepEvery }

// ReportWorks tells the journal, once, that a task which was a trouble works. A run that
// did what it could, and reported that something failed, does not.
func (l Tasks) ReportWorks(ctx context.Context, t ledger.Task) error {
	if t.Failures < ledger.TroubleAfter {
		return nil
	}
	return l.InGroup(ctx, ledger.SystemActor("worker"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		now, err := tx.Port.Task(t.ID)
		if ledger.IgnoreMissing(err) != nil {
			return fmt.Errorf("reading task: %w", err)
		}
		if now.Failures > 0 {
			return nil
		}
		return txn.TellTrouble(tx, t, "works_again", fmt.Sprintf("its provider works again after %s in a row",
			phrase.Count(t.Failures, "failure")))
	})
}
