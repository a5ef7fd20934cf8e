package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// mostRounds bounds how often one run decides again, because what it started was refused.
const mostRounds = 32

// ScheduleJobs gives GPUs to those jobs of a pool whose turn it is. The order is the scheduler's, and
// admission has the last word on each start. It may run at the same time as itself: a job that
// another run has started is left alone.
func (l Jobs) ScheduleJobs(ctx context.Context, poolID string) error {
	var q queue
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		q, err = readQueue(r, poolID)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the queue of pool %s: %w", poolID, err)
	}
	for _, f := range q.hopeless {
		if err := l.failJob(ctx, f); err != nil {
			return err
		}
	}
	for _, j := range q.late {
		if err := l.giveUpAttempt(ctx, j); err != nil {
			return err
		}
	}
	if q.isEmpty() {
		return nil
	}
	if err := l.startInOrder(ctx, q); err != nil || q.opens.IsZero() {
		return err
	}
	return l.InGroup(ctx, ledger.SystemActor("scheduler"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.WakePlanAt(poolID, q.opens)
		return nil
	})
}

// startInOrder starts what the scheduler wants started, and asks it again without those that
// admission refused.
func (l Jobs) startInOrder(ctx context.Context, q queue) error {
	s, err := q.scheduler()
	if err != nil {
		return fmt.Errorf("preparing the scheduler: %w", err)
	}
	for range mostRounds {
		refused := false
		for _, start := range s.Cycle(q.now).Starts {
			err := l.startJob(ctx, q.jobs[start.Job])
			if isRefusal(err) {
				s.Requeue(start.Job, q.now, q.now.Add(time.Hour))
				refused = true
				continue
			}
			if err != nil {
				return fmt.Errorf("starting job %s: %w", start.Job, err)
			}
		}
		if !refused {
			return nil
		}
	}
	return nil
}

// isRefusal reports whether a job got no GPUs now, which says nothing of others.
func isRefusal(err error) bool {
	refused, isRefused := errors.AsType[*ledger.RefusedError](err)
	return isRefused && refused != nil || errors.Is(err, ledger.ErrRecovering)
}

// startJob gives a job its GPUs, in the name of whoever submitted it.
func (l Jobs) startJob(ctx context.Context, j job.Job) error {
	err := l.asSubmitter(ctx, j, func(tx *txn.Tx, p *txn.PoolTx) error {
		is, err := txn.FindJob(tx, j.ID)
		if err != nil || is.State() != job.Pending || is.NotBefore.After(tx.Now()) {
			return err
		}
		if is, err = is.Apply(job.Schedule, "", tx.Now()); err != nil {
			return err
		}
		txn.PutJob(tx, is) // its attempt is counted before its nodes are told
		a, err := booking.ServeJob(tx, p, is)
		if err != nil {
			return err
		}
		is.AllocationID = a.ID
		message := "on " + phrase.Count(a.Shape.GPUs(), "GPU")
		if a.State() == allocation.Pending {
			message += ", once its nodes have booted"
		}
		txn.NoteJob(tx, is, message)
		return nil
	})
	if errors.Is(err, errKeyOver) {
		return l.failJob(ctx, failure{j, job.End{Code: job.KeyRevoked, Reason: errKeyOver.Error()}})
	}
	return err
}

var errKeyOver = errors.New("the key that submitted it may not be used any more")

// asSubmitter runs fn on the pool of a job in the name of whoever submitted it, or fails with
// errKeyOver.
func (l Jobs) asSubmitter(ctx context.Context, j job.Job, fn func(tx *txn.Tx, p *txn.PoolTx) error) error {
	var who ledger.Credential
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		who, err = tenancy.ReadCredential(r, j.SubmittedBy)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && !who.Valid(r.Now()) {
			return errKeyOver
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading who submitted job %s: %w", j.ID, err)
	}
	actor := who.Actor()
	actor.Via = "scheduler"
	return l.InGroup(ctx, actor, &ledger.LockHint{Pool: j.PoolID}, func(tx *txn.Tx) error {
		p, err := tx.LockPool(j.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		return fn(tx, p)
	})
}

// failure is a job that cannot start any more, and why.
type failure struct {
	job.Job
	end job.End
}

func (l Jobs) failJob(ctx context.Context, f failure) error {
	return l.onJob(ctx, ledger.SystemActor("scheduler"), f.ID, func(tx *txn.Tx, _ *txn.PoolTx, j job.Job) error {
		if j.State() != job.Pending {
			return nil
		}
		j.End = f.end
		next, err := j.Apply(job.Fail, f.end.Code, tx.Now())
		if err == nil {
			txn.NoteJob(tx, next, f.end.Reason)
			tx.WakePlan(next.PoolID) // others may wait for it
		}
		return err
	})
}

// giveUpAttempt ends an attempt that no daemon has started in time.
func (l Jobs) giveUpAttempt(ctx context.Context, j job.Job) error {
	return l.onJob(ctx, ledger.SystemActor("scheduler"), j.ID, func(tx *txn.Tx, p *txn.PoolTx, is job.Job) error {
		if is.State() != job.Scheduled || is.Attempt != j.Attempt {
			return nil
		}
		return endAttempt(tx, p, is, job.End{Code: job.Unserved,
			Reason: "the daemons of its nodes did not start it within " + phrase.Length(startWithin)})
	})
}

// QueueOf returns the jobs of a pool that wait, in the order in which they would start now, and
// behind them those whose time has not come or that wait for other jobs.
func QueueOf(r ledger.Reader, poolID string) ([]ledger.QueuedJob, error) {
	q, err := readQueue(r, poolID)
	if err != nil {
		return nil, err
	}
	if q.isEmpty() {
		return nil, nil
	}
	s, err := q.scheduler()
	if err != nil {
		return nil, fmt.Errorf("preparing the scheduler: %w", err)
	}
	var out []ledger.QueuedJob
	for i, id := range s.Order(q.now) {
		out = append(out, ledger.QueuedJob{Job: q.jobs[id], Position: i + 1, Code: ledger.WaitsForGPUs})
	}
	return append(out, q.later...), nil
}
