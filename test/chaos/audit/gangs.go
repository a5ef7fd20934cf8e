package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// attempt names an attempt of a job.
type attempt struct {
	job    string
	number int
}

// attemptRuns is what an attempt wrote down on its nodes.
type attemptRuns struct {
	attempt
	begun     map[int]time.Time // by rank
	ended     map[int]time.Time // by rank, with success
	firstOver time.Time         // when the first rank ended, however
	begunLast time.Time
	again     []string // ranks that began once more
}

// attemptsOf sorts what jobs wrote down by their attempts.
func attemptsOf(runs []Run) map[attempt]*attemptRuns {
	all := map[attempt]*attemptRuns{}
	for _, r := range runs {
		key := attempt{r.JobID, r.Attempt}
		a := all[key]
		if a == nil {
			a = &attemptRuns{attempt: key, begun: map[int]time.Time{}, ended: map[int]time.Time{}}
			all[key] = a
		}
		a.note(r)
	}
	return all
}

func (a *attemptRuns) note(r Run) {
	if !r.Ends {
		if _, twice := a.begun[r.Rank]; twice {
			a.again = append(a.again, fmt.Sprintf("attempt %d of job %s began twice on rank %d, again at %s", a.number,
				a.job, r.Rank, r.At.Format(stamp)))
		}
		a.begun[r.Rank], a.begunLast = r.At, r.At
		return
	}
	if a.firstOver.IsZero() {
		a.firstOver = r.At
	}
	if r.ExitCode == 0 {
		a.ended[r.Rank] = r.At
	}
}

// succeededAt is when the last rank had ended with success; false: not all of them did.
func (a *attemptRuns) succeededAt(nodes int) (time.Time, bool) {
	if len(a.ended) < max(nodes, 1) {
		return time.Time{}, false
	}
	return slices.MaxFunc(slices.Collect(maps.Values(a.ended)), time.Time.Compare), true
}

// unheard is how long, beside its grace, an attempt may take to be heard to have ended that was told to.
const unheard = 90 * time.Second

// runTwice are attempts that began although their job had succeeded, or that had begun before. An attempt that had
// been told to end before it succeeded counts as one that did not: its nodes may have been away when it did. So does
// one that was told later, if nobody was heard for so long that its GPUs were taken.
func (j Jobs) runTwice() (found []string) {
	all, ordered := attemptsOf(j.Runs), j.happened(ledger.JobOrdered)
	told := j.happened(ledger.JobEnding, ledger.JobPreempting)
	for _, a := range all {
		found = append(found, a.again...)
		at, done := a.succeededAt(j.Told[a.job].Nodes)
		if !done {
			continue
		}
		since := lastBefore(ordered[a.job], a.firstBegun())
		for _, later := range all {
			excused := slices.ContainsFunc(told[a.job], func(when time.Time) bool {
				return !when.Before(since) && (when.Before(at) || later.begunLast.Sub(when) >= unheard)
			})
			if !excused && later.job == a.job && later.number > a.number && later.begunLast.After(at) {
				found = append(found, fmt.Sprintf("attempt %d of job %s began at %s, after attempt %d had succeeded at %s",
					later.number, a.job, later.begunLast.Format(stamp), a.number, at.Format(stamp)))
			}
		}
	}
	slices.Sort(found)
	return found
}

// firstBegun is when its first rank began; zero: none wrote that down.
func (a *attemptRuns) firstBegun() time.Time {
	if len(a.begun) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(slices.Collect(maps.Values(a.begun)), time.Time.Compare)
}

// happened is when something of some types happened to each job, in order.
func (j Jobs) happened(types ...string) map[string][]time.Time {
	all := map[string][]time.Time{}
	for _, e := range j.Events {
		if slices.Contains(types, e.Type) {
			all[e.Subject] = append(all[e.Subject], e.At)
		}
	}
	return all
}

// lastBefore is the last of some times up to a limit; zero: all are after it.
func lastBefore(all []time.Time, limit time.Time) (last time.Time) {
	for _, at := range all {
		if !at.After(limit) && at.After(last) {
			last = at
		}
	}
	return last
}

// split are gangs that completed in an attempt of which not every rank ran, once and with the others, and ranks that
// no node has.
func (j Jobs) split() (found []string) {
	all := attemptsOf(j.Runs)
	for _, told := range j.Told {
		a := all[attempt{told.ID, told.Attempt}]
		if told.Nodes < 2 || told.State != contract.JobCompleted || a == nil {
			continue // what never ran is lost
		}
		for rank := range told.Nodes {
			begun, ran := a.begun[rank]
			_, ended := a.ended[rank]
			switch {
			case !ran || !ended:
				found = append(found, fmt.Sprintf("gang %s completed in attempt %d, and rank %d did not run to its end", told.ID,
					told.Attempt, rank))
			case !begun.Before(a.firstOver):
				found = append(found, fmt.Sprintf("rank %d of gang %s began at %s, and another one was over at %s", rank,
					told.ID, begun.Format(stamp), a.firstOver.Format(stamp)))
			}
		}
	}
	for _, r := range j.Runs {
		if told, there := j.Told[r.JobID]; there && !r.Ends && r.Rank >= max(told.Nodes, 1) {
			found = append(found, fmt.Sprintf("rank %d of job %s ran, which has %d nodes", r.Rank, r.JobID, told.Nodes))
		}
	}
	slices.Sort(found)
	return found
}

// left are jobs that left for others although they do not allow it, or that are over without an attempt after it.
func (j Jobs) left() (found []string) {
	asked := j.cancelled()
	for _, told := range j.Told {
		switch {
		case told.Preemptions == 0:
		case !told.Preemptible:
			found = append(found, fmt.Sprintf("job %s left for others, and does not allow it", told.ID))
		case told.Attempt <= told.Preemptions && !asked[told.ID]:
			found = append(found, fmt.Sprintf("job %s left %d times, and had %d attempts", told.ID, told.Preemptions,
				told.Attempt))
		}
	}
	slices.Sort(found)
	return found
}
