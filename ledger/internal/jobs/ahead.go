package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
)

// A job that is put off, or waits for others, is evidence by itself of what will be wanted: the scheduler is played
// forward with it, and where it would begin a node is ready by then.
const (
	mostAhead = 64
	// aheadSettles is how far what is predicted has to move before it counts as another: each prediction of a job that
	// runs differs a little from the one before, and each change has the pool planned.
	aheadSettles = 15 * time.Second
	// aheadEvery is how often it is foreseen: a pool is planned at each start and end of a job, and a boot takes minutes.
	aheadEvery = 10 * time.Second
)

// aheadOf is what is foreseen of jobs that may not start yet.
type aheadOf struct {
	jobs []ledger.JobAhead
	look time.Time // when the next of them is near enough; zero: nobody knows
}

// lookAhead foresees which jobs begin about a boot from now that may not start yet, and where. Where it has done so a
// moment ago, that holds.
func lookAhead(ctx context.Context, l Jobs, q queue) (out aheadOf, err error) {
	if len(q.later) == 0 {
		return out, nil
	}
	within := plan.KeepAhead(&q.pool.Pool.Pool, &q.pool.Pool.Learned, l.Config.Policy) + lookAgain
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		timed, look, err := timedWithin(q, newEnds(l, r), within)
		if out.look = look; err != nil || len(timed) == 0 {
			return err
		}
		if again := l.Queues.Foreseen(q.pool.Pool.ID).Add(aheadEvery); q.now.Before(again) {
			out.jobs, out.look = stillAhead(q), earliestOf(q.now, out.look, again)
			return nil
		}
		l.Queues.NoteForeseen(q.pool.Pool.ID, q.now)
		if q, err = l.readQueue(r, q.pool.Pool.ID); err != nil || q.isEmpty() { // as it is after what has started
			return err
		}
		if timed, out.look, err = timedWithin(q, newEnds(l, r), within); err == nil && len(timed) > 0 {
			out.jobs, err = foreseeAhead(l, q, r, timed, within)
		}
		return err
	})
	if err != nil {
		return out, fmt.Errorf("foreseeing the jobs ahead: %w", err)
	}
	out.jobs = settled(q.turns.Ahead, out.jobs, q.now)
	return out, nil
}

// stillAhead are those that were foreseen last, and may still not start.
func stillAhead(q queue) []ledger.JobAhead {
	return slices.DeleteFunc(slices.Clone(q.turns.Ahead), func(a ledger.JobAhead) bool {
		return !slices.ContainsFunc(q.later, func(w ledger.QueuedJob) bool { return w.ID == a.JobID })
	})
}

// foreseeAhead foresees which of the jobs begin within a time from now, and where.
func foreseeAhead(l Jobs, q queue, r ledger.Reader, timed []ledger.QueuedJob, within time.Duration) (
	out []ledger.JobAhead, err error) {
	waiting, err := inTurn(q)
	if err != nil {
		return out, err
	}
	f := newForesight(q)
	by := newPredictor(r)
	by.runs = l.LiveJobs
	if err := f.read(by, slices.Concat(waiting, timed)); err != nil {
		return out, err
	}
	s, err := f.scheduler()
	if err != nil {
		return out, fmt.Errorf("preparing the scheduler to play it forward: %w", err)
	}
	p := f.playback(likeliest)
	begin := p.Begin
	p.Begin = func(id string, spots placement.Placement, at time.Time) (begins, ends time.Time) {
		i := slices.IndexFunc(timed, func(w ledger.QueuedJob) bool { return w.ID == id })
		if i >= 0 && at.Sub(q.now) <= within && len(out) < mostAhead {
			is := ledger.JobAhead{JobID: id, At: at, Until: at.Add(booking.LeaseOfJob(timed[i].Job)), Slots: slotsOf(spots)}
			for _, spot := range spots {
				is.GPUs = append(is.GPUs, spot.GPUs)
			}
			out = append(out, is)
		}
		return begin(id, spots, at)
	}
	s.Play(p, q.now)
	return out, nil
}

// likeliest is the chance of the median.
const likeliest = 1

// inTurn are the jobs that wait for GPUs, in the order in which they would start.
func inTurn(q queue) (all []ledger.QueuedJob, err error) {
	s, err := q.scheduler()
	if err != nil {
		return nil, fmt.Errorf("preparing the scheduler: %w", err)
	}
	may, _ := s.Within(s.Order(q.now))
	for _, id := range may {
		all = append(all, ledger.QueuedJob{Job: q.jobs[id], Code: ledger.WaitsForGPUs})
	}
	return all, nil
}

// timedWithin are the jobs that may start within a time from now, and not yet, as if they waited for that alone; and
// when to look for the next one.
func timedWithin(q queue, e *ends, within time.Duration) (timed []ledger.QueuedJob, look time.Time, err error) {
	for _, w := range q.later {
		at, known, err := mayStartAt(q, e, w)
		if err != nil {
			return nil, look, err
		}
		if !known || q.lacksNodes(w.Job) || booking.ClaimableLater(q.pool.Reservations, w.Job, at) {
			continue
		}
		if from := at.Add(-within); from.After(q.now) {
			look = earliestOf(q.now, look, from)
			continue
		}
		w.Code, w.NotBefore, w.EligibleAt = ledger.WaitsForTime, at, at
		timed = append(timed, w)
	}
	return timed, look, nil
}

// mayStartAt is when a job is likely to be let start that is not yet; false: that cannot be said.
func mayStartAt(q queue, e *ends, w ledger.QueuedJob) (at time.Time, known bool, err error) {
	switch {
	case inReservation(w.Job):
		return at, false, nil
	case w.Code == ledger.WaitsForTime:
		return w.NotBefore, true, nil
	case w.Code != ledger.WaitsForJob:
		return at, false, nil
	}
	at = w.NotBefore
	for _, d := range w.Dependencies {
		if d.Condition.Judge(q.others[d.JobID]) == job.Met {
			continue
		}
		end, err := e.of(q, d)
		if err != nil || end.IsZero() {
			return at, false, err
		}
		// What the playback ends, it ends up to a fiftieth later, and the job may have its GPUs.
		at = calendar.Later(at, end.Add(end.Sub(q.now)/25+time.Second))
	}
	return at, true, nil
}

// ends are when those are likely to end that others wait for, each of them found once.
type ends struct {
	by    *predictor
	known map[job.Depends]time.Time
}

func newEnds(l Jobs, r ledger.Reader) *ends {
	e := &ends{by: newPredictor(r), known: map[job.Depends]time.Time{}}
	e.by.runs = l.LiveJobs
	return e
}

// of is when the last of those is likely to end on which a job depends, which run in its pool: by the median of what is
// predicted of them, or their limits. Zero: they need not end for that, or one does not run.
func (e *ends) of(q queue, d job.Depends) (last time.Time, err error) {
	if last, found := e.known[d]; found {
		return last, nil
	}
	last, err = e.find(q, d)
	e.known[d] = last
	return last, err
}

func (e *ends) find(q queue, d job.Depends) (last time.Time, err error) {
	is := q.others[d.JobID]
	if d.Condition != job.AfterOK && d.Condition != job.AfterAny || is.Over+is.WithGPUs < is.Jobs {
		return last, nil
	}
	found := 0
	for _, j := range q.holders {
		if j.ID != d.JobID && (j.Array.ID == "" || j.Array.ID != d.JobID) {
			continue
		}
		found++
		p, err := e.by.of(j)
		if err != nil {
			return last, err
		}
		last = calendar.Later(last, likelyEnd(q, j, p.P50))
	}
	if found < is.WithGPUs {
		return time.Time{}, nil
	}
	return last, nil
}

// likelyEnd is when a job ends that runs for a time in all, or gives its GPUs back at the latest where that is not
// known.
func likelyEnd(q queue, j job.Job, runs time.Duration) time.Time {
	began := j.StartedAt
	if began.IsZero() {
		began = q.now
	}
	if runs <= 0 {
		runs = booking.LeaseOfJob(j)
	}
	return calendar.Later(q.now, began.Add(runs))
}

// settled is what is foreseen now, as it was foreseen before where that has hardly changed.
func settled(before, now []ledger.JobAhead, at time.Time) []ledger.JobAhead {
	out := slices.Clone(now)
	for i, is := range out {
		for _, was := range before {
			moved := is.At.Sub(was.At).Abs()
			if was.JobID == is.JobID && slices.Equal(was.Slots, is.Slots) && slices.Equal(was.GPUs, is.GPUs) &&
				was.At.After(at) && moved <= max(aheadSettles, is.At.Sub(at)/10) {
				out[i] = was
			}
		}
	}
	return out
}

func sameAhead(a, b []ledger.JobAhead) bool {
	return slices.EqualFunc(a, b, func(a, b ledger.JobAhead) bool {
		return a.JobID == b.JobID && a.At.Equal(b.At) && slices.Equal(a.Slots, b.Slots) && slices.Equal(a.GPUs, b.GPUs)
	})
}

// noteNodesAhead says of jobs that may not start yet which nodes are made ready for them.
func noteNodesAhead(q queue, all []ledger.QueuedJob) {
	for _, a := range q.turns.Ahead {
		for i, w := range all {
			if w.ID == a.JobID {
				all[i].Ahead = describeAhead(q, a)
			}
		}
	}
}

// describeAhead says which of the nodes that a job will need are ready, or being booted; empty: none is yet.
func describeAhead(q queue, a ledger.JobAhead) string {
	ready, coming, by := 0, 0, q.now
	for _, n := range q.pool.Nodes {
		switch {
		case !slices.Contains(a.Slots, n.Slot) || node.Machine.Terminal(n.State()):
		case n.State() == node.Ready:
			ready++
		case n.Coming():
			coming++
			if at := n.RequestedAt.Add(q.pool.Pool.Boot.P50()); at.After(by) {
				by = at
			}
		}
	}
	switch {
	case coming > 0:
		return fmt.Sprintf("%s being booted for it, ready at about %s", areNodes(coming), ledger.FormatTimeSeen(by, q.now))
	case ready == len(a.Slots):
		return areNodes(ready) + " ready for it"
	}
	return ""
}

func areNodes(n int) string {
	if n == 1 {
		return "a node is"
	}
	return phrase.Count(n, "node") + " are"
}
