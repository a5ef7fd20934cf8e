package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// turns are the jobs of a queue, as they are started in order.
type turns struct {
	l      Jobs
	q      queue
	by     submitters
	passed []start // that admission has refused, in order
}

// start is a job that is to start, in whose name, and what it claims.
type start struct {
	actor ledger.Actor
	job.Job
	claims booking.PartClaim
}

// chosen is a job that is to start, by its id, and what it claims.
type chosen struct {
	id     string
	claims booking.PartClaim
}

func withoutClaims(ids []string) (all []chosen) {
	for _, id := range ids {
		all = append(all, chosen{id: id})
	}
	return all
}

// startInOrder starts what the scheduler wants started, and asks it again without those that
// admission refused. It returns the last decision, and whose turn is next if none was.
func (l Jobs) startInOrder(ctx context.Context, q queue, rec *recording) (
	decided scheduler.Decision, next []ledger.JobTurn, err error) {
	s, err := q.scheduler()
	if err != nil {
		return decided, nil, fmt.Errorf("preparing the scheduler: %w", err)
	}
	s.Reserve(claimable(q)...)
	rec.begin(q, s)
	t := &turns{l: l, q: q, by: newSubmitters(ctx, l)}
	for range mostRounds {
		decided = s.Cycle(q.now)
		rec.note(decided)
		q.noteRuntimes(decided.Starts)
		starts := make([]chosen, 0, len(decided.Starts))
		for _, start := range decided.Starts {
			starts = append(starts, chosen{start.Job, claimOf(start)})
		}
		refused, err := t.startAll(ctx, starts)
		if err != nil {
			return decided, nil, err
		}
		if len(refused) == 0 && len(t.passed) == 0 {
			return decided, q.nextTurns(s, decided.Starts, rec), nil
		}
		if len(refused) == 0 {
			return decided, nil, nil
		}
		putBack(q, s, refused, rec.putBack())
	}
	return decided, nil, nil
}

// kind is what decides what admission says to a job, at any one moment.
type kind struct {
	likes
	by             string
	runtime, grace time.Duration
	workload       capacity.Workload
	priority       job.Priority
	nodes          string // that it needs, and stays off
}

func kindOf(j job.Job) kind {
	nodes := [][]string{j.Where.Constraints, j.Where.Tolerates, j.Where.Excludes, j.Where.Pools, j.Avoids, j.Where.Apart}
	return kind{likes: likes{j.OrganizationID, j.UserID, j.Shape}, by: j.SubmittedBy, runtime: j.MaxRuntime,
		grace: j.Grace, workload: j.Workload, priority: j.Priority, nodes: fmt.Sprintf("%q", nodes)}
}

// putBack has jobs wait again that admission has refused: those that were to claim something for their turn, and the
// others no more in this run.
func putBack(q queue, s *scheduler.Scheduler, refused []start, noted *scheduler.PutBack) {
	var passed []start
	for _, one := range refused {
		if !scheduler.Refuse(s, noted, one.ID, q.now) {
			passed = append(passed, one)
		}
	}
	q.leaveOut(s, passed, noted)
}

// leaveOut takes those out of a scheduler that admission would refuse as it has refused others: of a thousand jobs that
// are alike, one is asked for. One for which others leave, or have left, is like no other: what they leave is kept for
// it.
func (q queue) leaveOut(s *scheduler.Scheduler, refused []start, noted *scheduler.PutBack) {
	kinds := map[kind]bool{}
	for _, one := range refused {
		kinds[kindOf(one.Job)] = true
	}
	awaits := map[string]bool{}
	for _, room := range q.pool.Pool.Rooms {
		awaits[room.For] = true
	}
	for _, id := range q.order {
		if !awaits[id] && kinds[kindOf(q.jobs[id])] {
			scheduler.LeaveOut(s, noted, id)
		}
	}
}

// startsAtOnce bounds how many starts share a transaction.
const startsAtOnce = 32

// startAll starts the jobs that a cycle chose, and returns those that admission refused.
func (t *turns) startAll(ctx context.Context, starts []chosen) (refused []start, err error) {
	for some := range slices.Chunk(starts, startsAtOnce) {
		var all []start
		for _, is := range some {
			j := t.q.jobs[is.id]
			switch actor, err := t.by.of(j); {
			case errors.Is(err, errKeyOver):
				end := job.End{Code: job.KeyRevoked, Reason: errKeyOver.Error()}
				if err := t.l.failAll(ctx, []failure{{j, end}}); err != nil {
					return nil, err
				}
			case err != nil:
				return nil, err
			default:
				all = append(all, start{actor, j, is.claims})
			}
		}
		not, err := t.startTogether(ctx, all)
		if err != nil {
			return nil, err
		}
		refused = append(refused, not...)
	}
	return refused, nil
}

// startTogether starts jobs of one pool in one transaction, and returns those that admission refused. Those that it
// refused before come first: GPUs may have become free since, and it is still their turn.
func (t *turns) startTogether(ctx context.Context, all []start) (refused []start, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	var passed []start
	wanted := make([]string, len(all))
	for i, s := range all {
		wanted[i] = s.ID
	}
	err = t.l.inPoolOf(ctx, ledger.SystemActor("scheduler"), all[0].PoolID, func(tx *txn.Tx, p *txn.PoolTx) (err error) {
		if err := txn.ReadJobs(tx, wanted); err != nil {
			return err
		}
		if passed, err = startEach(tx, p, t.passed, true); err != nil {
			return err
		}
		refused, err = startEach(tx, p, all, false)
		return err
	})
	t.passed = passed
	for _, one := range refused {
		if one.claims.Reservation == "" { // others still have their turn
			t.passed = append(t.passed, one)
		}
	}
	return refused, err
}

// likes is what decides whether admission refuses a job in one transaction, for most of what it can refuse.
type likes struct {
	organization, user string
	shape              capacity.Shape
}

// startEach starts jobs and returns those that admission refused. Where likeOnce is set it asks once for those that
// are alike: there may be many.
func startEach(tx *txn.Tx, p *txn.PoolTx, all []start, likeOnce bool) (refused []start, err error) {
	asked := map[likes]bool{}
	for _, s := range all {
		like := likes{s.OrganizationID, s.UserID, s.Shape}
		if likeOnce && asked[like] {
			refused = append(refused, s)
			continue
		}
		err := tx.RunVerb(s.actor, func(tx *txn.Tx) error { return startJob(tx, p, s.Job, s.claims) })
		if isRefusal(err) {
			refused, asked[like] = append(refused, s), true
		} else if err != nil {
			return nil, fmt.Errorf("starting job %s: %w", s.ID, err)
		}
	}
	return refused, nil
}

// isRefusal reports whether a job got no GPUs now, which says nothing of others.
func isRefusal(err error) bool {
	refused, isRefused := errors.AsType[*ledger.RefusedError](err)
	return isRefused && refused != nil || errors.Is(err, ledger.ErrRecovering) ||
		errors.Is(err, booking.ErrReservationOver) || errors.Is(err, booking.ErrNotClaimable) // which the next look finds
}
