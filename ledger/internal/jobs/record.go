package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

// recording is a look at a queue as it is recorded. Nil is one that nobody wants, and costs nothing.
type recording struct {
	to ledger.CycleRecorder
	is scheduler.Record
}

func newRecording(l Jobs) *recording {
	if l.Config.Cycles == nil || l.IsDryRun {
		return nil
	}
	return &recording{to: l.Config.Cycles}
}

// begin notes what is going to be decided on.
func (r *recording) begin(q queue, s *scheduler.Scheduler) {
	if r != nil {
		r.is = recordOf(q, s)
	}
}

// recordOf is a record in which nothing has been decided yet.
func recordOf(q queue, s *scheduler.Scheduler) scheduler.Record {
	r := scheduler.Record{Version: scheduler.RecordVersion, Pool: q.pool.Pool.Name, Now: q.now, Policy: policyOf(q),
		State: s.Snapshot(), Jobs: map[string]string{}}
	for allocationID, j := range q.holders {
		r.Jobs[allocationID] = j.ID
	}
	return r
}

// note notes what a cycle decided.
func (r *recording) note(d scheduler.Decision) {
	if r != nil {
		r.is.Rounds = append(r.is.Rounds, scheduler.Round{Decision: d})
	}
}

// putBack is where to note what could not be carried out of the last decision.
func (r *recording) putBack() *scheduler.PutBack {
	if r == nil || len(r.is.Rounds) == 0 {
		return &scheduler.PutBack{}
	}
	return &r.is.Rounds[len(r.is.Rounds)-1].PutBack
}

// notMade notes that nobody was told to leave for a job in the end.
func (r *recording) notMade(jobID string) {
	if r != nil {
		r.is.NotMade = append(r.is.NotMade, jobID)
	}
}

// next returns whose turn is next, and notes it.
func (r *recording) next(s *scheduler.Scheduler, now time.Time, ends []string) []string {
	if r == nil {
		return scheduler.NextTurns(s, nil, now, ends)
	}
	return scheduler.NextTurns(s, &r.is, now, ends)
}

// keep has the look kept, whose transactions are over. With an error the last of them may not have been committed.
func (r *recording) keep(ctx context.Context, err error) {
	if r == nil || len(r.is.Rounds) == 0 {
		return
	}
	if err != nil {
		r.is.Failed = err.Error()
	}
	if r.is.Decides() {
		r.to.RecordCycles(ctx, r.is)
	}
	r.is = scheduler.Record{}
}

// DecideNow returns what the scheduler would decide in a pool at this instant, and on what. Nothing is carried out,
// and nobody's admission is asked.
func DecideNow(l Jobs, r ledger.Reader, poolID string) (scheduler.Record, error) {
	q, err := l.readQueue(r, poolID)
	if err != nil {
		return scheduler.Record{}, err
	}
	if q.pool.Pool.ID == "" { // nobody waits or runs
		if q.pool, err = r.LiveState(poolID); err != nil {
			return scheduler.Record{}, fmt.Errorf("reading pool %s: %w", poolID, err)
		}
		q.rules = l.Config.Scheduling.Now().Of(q.pool.Pool.Name)
		q.pools = map[string]ledger.PoolState{poolID: q.pool}
	}
	s, err := q.scheduler()
	if err != nil {
		return scheduler.Record{}, fmt.Errorf("preparing the scheduler: %w", err)
	}
	s.Reserve(claimable(q)...)
	out := recordOf(q, s)
	out.DryRun = true
	d := s.Cycle(q.now)
	out.Rounds = []scheduler.Round{{Decision: d}}
	scheduler.NextTurns(s, &out, q.now, firstEnds(q, d.Starts))
	return out, nil
}
