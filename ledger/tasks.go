package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
)

// Dispatch marks up to limit due tasks as sent and returns them for a queue.
// What is lost on the way is due again after window.
func (l Tasks) Dispatch(ctx context.Context, limit int, window time.Duration) (tasks []Task, err error) {
	err = l.store.InTx(ctx, func(tx Tx) error {
		tasks, err = tx.Dispatch(limit, window)
		return err
	})
	return tasks, err
}

// NextTask is when the first waiting task is due; zero means that none waits.
func (l Tasks) NextTask(ctx context.Context) (at time.Time, err error) {
	err = l.store.Read(ctx, func(r Reader) error {
		at, err = r.NextTask()
		return err
	})
	return at, err
}

// Reap makes tasks whose worker fell silent ready again.
func (l Tasks) Reap(ctx context.Context) (n int, err error) {
	err = l.store.InTx(ctx, func(tx Tx) error {
		n, err = tx.Reap()
		return err
	})
	return n, err
}

// ClaimTask gives one attempt of a task to the caller for the lease. ErrFenced
// means that the message was late or a duplicate, and must be dropped.
func (l Tasks) ClaimTask(ctx context.Context, id string, attempt int, lease time.Duration) (t Task, err error) {
	err = l.store.InTx(ctx, func(tx Tx) error {
		t, err = tx.ClaimTask(id, attempt, lease)
		return err
	})
	return t, err
}

// ExtendTask prolongs the lease of a claimed task.
func (l Tasks) ExtendTask(ctx context.Context, g Guard, lease time.Duration) error {
	return l.store.InTx(ctx, func(tx Tx) error { return tx.Extend(g, lease) })
}

// RetryTask has a claimed task run again after a while. Where it failed as often in
// a row as makes it a trouble, the journal tells of it, once.
func (l Tasks) RetryTask(ctx context.Context, g Guard, after time.Duration, failure string) error {
	if failure == "" {
		return retryTask(ctx, l.engine, g, after, "")
	}
	return l.inOwnTx(ctx, SystemActor("worker"), func(tx *groupTx) error {
		t, err := tx.port.Task(g.TaskID)
		if err != nil {
			return fmt.Errorf("reading task: %w", err)
		}
		t.Failures, t.LastError = t.Failures+1, failure
		if err := tx.port.Finish(g, tx.now().Add(after), failure); err != nil {
			return err
		}
		if t.Failures != TroubleAfter {
			return nil
		}
		return tellTrouble(tx, t, "failing", fmt.Sprintf("its provider failed %s in a row: %s",
			phrase.Count(t.Failures, "time"), clipText(failure, 200)))
	})
}

// FinishTask ends a claimed task; a keyed one sleeps until it is woken.
func (l Tasks) FinishTask(ctx context.Context, g Guard) error {
	return l.store.InTx(ctx, func(tx Tx) error { return tx.Finish(g, time.Time{}, "") })
}

// EnsureSweep has a provisioner's list compared with the ledger again and again.
func (l Tasks) EnsureSweep(ctx context.Context, provisioner string) error {
	return l.inOwnTx(ctx, SystemActor("worker"), func(tx *groupTx) error {
		tx.addKeyedTask(sweepKey(provisioner), TaskSweep, provisioner)
		tx.addKeyedTask(schedulesKey, TaskSchedules, "all")
		if l.cfg.Seals != (SealKey{}) {
			tx.addKeyedTask(sealsKey, TaskSeal, "journal")
		}
		return nil
	})
}

// SweepEvery is how long a finished sweep sleeps.
func (l Tasks) SweepEvery() time.Duration { return l.cfg.SweepEvery }
