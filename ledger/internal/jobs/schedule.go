package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		q, err = l.readQueue(r, poolID)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the queue of pool %s: %w", poolID, err)
	}
	if q.pool.Pool.Recovery.Active() { // nothing is started or ended before an operator confirms
		return nil
	}
	if err := l.failAll(ctx, q.hopeless); err != nil {
		return err
	}
	if err := l.noteEligible(ctx, q.eligible); err != nil {
		return err
	}
	if err := giveUpUnstarted(ctx, l, q); err != nil {
		return err
	}
	for _, j := range q.overdue {
		if err := endInTime(ctx, l, j); err != nil {
			return err
		}
	}
	if err := moveLacking(ctx, l, q); err != nil {
		return err
	}
	turns, err := l.decide(ctx, q)
	if err != nil {
		return err
	}
	if err := moveDisplaced(ctx, l, q); err != nil {
		return err
	}
	predict := noteForetelling(l, &q)
	ahead, err := lookAhead(ctx, l, q)
	if err != nil {
		return err
	}
	if err := keepDecided(ctx, l, q, turns, ahead); err != nil || !predict {
		return err
	}
	return foretellStarts(ctx, l, q) // what was decided does not wait for it
}

// keepDecided keeps whose turn is next, for whom nodes are to be ready, and when to look again.
func keepDecided(ctx context.Context, l Jobs, q queue, turns []ledger.JobTurn, ahead aheadOf) error {
	moved := !sameAhead(ahead.jobs, q.turns.Ahead)
	if len(turns)+len(q.turns.Next) > 0 || moved || q.turns.Damaged {
		keep := ledger.JobTurns{PoolID: q.pool.Pool.ID, DecidedAt: q.now, Next: turns, Ahead: ahead.jobs}
		err := l.inPoolOf(ctx, ledger.SystemActor("scheduler"), keep.PoolID, func(tx *txn.Tx, _ *txn.PoolTx) error {
			if putTurns(tx, keep); moved {
				tx.WakePlan(keep.PoolID)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("keeping whose turn it is in pool %s: %w", keep.PoolID, err)
		}
	}
	next := earliestOf(q.now, q.nextLook(), ahead.look)
	if next.IsZero() {
		return nil
	}
	return l.InGroup(ctx, ledger.SystemActor("scheduler"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.WakePlanAt(q.pool.Pool.ID, next)
		return nil
	})
}

// ChangeScheduling has jobs scheduled by c from now on, and looks at every pool anew. Where nothing can be stored,
// nothing has changed.
func (l Jobs) ChangeScheduling(ctx context.Context, c ledger.SchedulingConfig) error {
	before := l.Config.Scheduling.Now()
	l.Config.Scheduling.Set(c) // before any pool is looked at
	err := l.InGroup(ctx, ledger.SystemActor("scheduler"), &ledger.LockHint{}, txn.WakeAllPlans)
	if err != nil {
		l.Config.Scheduling.Set(before)
	}
	return err
}

// decide starts jobs, and has others leave for those that cannot start. It returns whose turn is next.
func (l Jobs) decide(ctx context.Context, q queue) (turns []ledger.JobTurn, err error) {
	if q.isEmpty() {
		return nil, l.dropStaleRooms(ctx, q, nil)
	}
	if err := l.startReserved(ctx, q); err != nil {
		return nil, err
	}
	rec := newRecording(l)
	decided, turns, err := l.startInOrder(ctx, q, rec)
	if err == nil {
		err = l.makeRooms(ctx, q, decided, rec)
	}
	rec.keep(ctx, err)
	if err == nil {
		err = l.dropStaleRooms(ctx, q, decided.Broken)
	}
	return turns, err
}

// nextLook is when time alone changes what is to be done; zero: never. Each plan of the pool, which may be the next
// one for another reason, forgets when it was to be.
func (q queue) nextLook() time.Time {
	all := []time.Time{q.opens, q.nextLeaving(), q.reservedUntil(), nextClaimable(q), q.nextUnstarted(), q.foretell}
	for _, j := range q.holders {
		all = append(all, j.Ending.By, j.Awaited.Until)
	}
	for _, n := range q.pool.Nodes {
		all = append(all, n.Heat.HotUntil)
	}
	if len(q.lacking())+len(q.displaced()) > 0 { // another pool may have nodes for them by then
		all = append(all, q.now.Add(lookAgain))
	}
	return earliestOf(q.now, all...)
}

// earliestOf is the first of some instants that is still to come; zero: none is.
func earliestOf(now time.Time, all ...time.Time) (next time.Time) {
	for _, at := range all {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// submitters are those in whose name jobs are started, each of them read once.
type submitters struct {
	known map[string]ledger.Actor // by their key
	read  func(j job.Job) (ledger.Actor, error)
}

// newSubmitters reads each of them by itself.
func newSubmitters(ctx context.Context, l Jobs) submitters {
	return submitters{known: map[string]ledger.Actor{}, read: func(j job.Job) (actor ledger.Actor, err error) {
		err = l.Store.Read(ctx, func(r ledger.Reader) (err error) {
			actor, err = submitterOf(r, j)
			return err
		})
		return actor, err
	}}
}

// submittersIn reads them within a transaction.
func submittersIn(tx *txn.Tx) submitters {
	return submitters{known: map[string]ledger.Actor{}, read: func(j job.Job) (ledger.Actor, error) {
		return submitterOf(tx.Port, j)
	}}
}

// of returns in whose name a job is started, or fails with errKeyOver.
func (s submitters) of(j job.Job) (ledger.Actor, error) {
	if actor, found := s.known[j.SubmittedBy]; found {
		return actor, nil
	}
	actor, err := s.read(j)
	if err == nil {
		s.known[j.SubmittedBy] = actor
	}
	return actor, err
}

// startJob gives a job its GPUs, what it claims if it claims any, in the name of whoever submitted it. One that another
// run has started is left alone.
func startJob(tx *txn.Tx, p *txn.PoolTx, j job.Job, claims booking.PartClaim) error {
	is, err := txn.FindJob(tx, j.ID)
	if err != nil || is.State() != job.Pending || is.NotBefore.After(tx.Now()) || is.PoolID != p.Pool.ID {
		return err
	}
	if full, err := isArrayFull(tx, is); err != nil || full {
		return err
	}
	if is, err = is.Apply(job.Schedule, "", tx.Now()); err != nil {
		return err
	}
	is.Predicted = j.Predicted
	txn.PutJob(tx, is) // its attempt is counted before its nodes are told
	a, err := booking.ServeJob(tx, p, is, claims)
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
}

var errKeyOver = errors.New("the key that submitted it may not be used any more")

// submitterOf returns in whose name a job is started, or fails with errKeyOver.
func submitterOf(r ledger.Reader, j job.Job) (ledger.Actor, error) {
	who, err := tenancy.ReadCredential(r, j.SubmittedBy)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && !who.Valid(r.Now()) {
		err = errKeyOver
	}
	if err != nil {
		return ledger.Actor{}, fmt.Errorf("reading who submitted job %s: %w", j.ID, err)
	}
	actor := who.Actor()
	actor.Via = "scheduler"
	return actor, nil
}

// inPoolOf runs fn on a pool, which is locked.
func (l Jobs) inPoolOf(ctx context.Context, actor ledger.Actor, poolID string,
	fn func(tx *txn.Tx, p *txn.PoolTx) error) error {
	return l.InGroup(ctx, actor, &ledger.LockHint{Pool: poolID}, func(tx *txn.Tx) error {
		p, err := tx.LockPool(poolID)
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

// changesAtOnce bounds how many jobs change in one transaction: those of a whole array may.
const changesAtOnce = 100

// failAll fails those jobs of one pool that still wait.
func (l Jobs) failAll(ctx context.Context, all []failure) error {
	return changeAll(ctx, l, all, func(f failure) job.Job { return f.Job }, failJob)
}

// noteEligible notes of jobs of one pool that their wait has begun.
func (l Jobs) noteEligible(ctx context.Context, all []job.Job) error {
	return changeAll(ctx, l, all, func(j job.Job) job.Job { return j }, func(tx *txn.Tx, j job.Job) error {
		is, err := txn.FindJob(tx, j.ID)
		if next := is.LetWait(tx.Now()); err == nil && next.IsEligible() && !is.IsEligible() {
			txn.PutJob(tx, next)
		}
		return err
	})
}

// changeAll changes what is of jobs of one pool, each by itself.
func changeAll[T any](ctx context.Context, l Jobs, all []T, of func(T) job.Job, change func(*txn.Tx, T) error) error {
	for some := range slices.Chunk(all, changesAtOnce) {
		err := l.inPoolOf(ctx, ledger.SystemActor("scheduler"), of(some[0]).PoolID, func(tx *txn.Tx, _ *txn.PoolTx) error {
			for _, one := range some {
				if err := change(tx, one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func failJob(tx *txn.Tx, f failure) error {
	j, err := txn.FindJob(tx, f.ID)
	if err != nil || j.State() != job.Pending {
		return err
	}
	j.End = f.end
	next, err := j.Apply(job.Fail, f.end.Code, tx.Now())
	if err != nil {
		return fmt.Errorf("failing job %s: %w", j.ID, err)
	}
	txn.NoteJob(tx, next, f.end.Reason)
	tx.WakePlan(next.PoolID) // others may wait for it
	return nil
}

// QueueOf returns the jobs of a pool that wait, in the order in which they would start now, and
// behind them those whose time has not come or that wait for other jobs; with when they are predicted to start, and
// without their commands. Nothing of it may be changed.
func (l Jobs) QueueOf(r ledger.Reader, poolID string) ([]ledger.QueuedJob, error) {
	return l.Queues.QueueOf(r, poolID, func() ([]ledger.QueuedJob, error) { return l.makeQueue(r, poolID) })
}

func (l Jobs) makeQueue(r ledger.Reader, poolID string) ([]ledger.QueuedJob, error) {
	q, err := l.readQueue(r, poolID)
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
	out := make([]ledger.QueuedJob, 0, len(q.jobs))
	may, mayNot := s.Within(s.Order(q.now))
	may = slices.Concat(q.reserved, may)
	for i, id := range may {
		w := waitingNow(q, q.jobs[id])
		w.Position, w.Turn = i+1, describeTurn(q, s, w.Job)
		out = append(out, w)
	}
	all := slices.Concat(out, q.overLimit(mayNot), q.later)
	noteNodesAhead(q, all[len(all)-len(q.later):])
	if q.pool.Pool.Recovery.Active() {
		for i := range all {
			all[i].Unpredicted = "nothing starts in its pool before an operator confirms what was restored"
		}
		return all, nil
	}
	return all, q.foresee(r, all)
}
