package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

const (
	mostForeseen   = 300              // jobs of a queue whose starts are predicted
	mostCycles     = 400              // of a scheduler that is played forward
	startsAtLatest = 10 * time.Second // after it could: a job that has not started then is refused by more than GPUs
)

// chances are those of a band's three instants.
var chances = [3]float64{0.1, 0.5, 0.9}

// foresight is what the starts of a queue's jobs are predicted from.
type foresight struct {
	queue
	leases  *learned.Distribution
	lengths map[string]runtimes.Prediction // of jobs that wait, by id, and of those that run, by allocation
	unsure  map[string]bool                // those of which nothing is known
	order   []string                       // the jobs that are played, in order
	early   []job.Job                      // of those, that wait for a time
}

func newForesight(q queue) foresight {
	q.coldLast, q.bounded = true, true // as admission has it
	return foresight{queue: q, leases: q.pool.Pool.Leases.Distribution(), lengths: map[string]runtimes.Prediction{},
		unsure: map[string]bool{}}
}

// foresee tells of jobs that wait, in their order, when they are predicted to start, or why that cannot be said.
func (q queue) foresee(r ledger.Reader, all []ledger.QueuedJob) error {
	f := newForesight(q)
	if err := f.read(newPredictor(r), all); err != nil {
		return err
	}
	var bands [3]map[string]scheduler.Foreseen
	for i := range chances {
		s, err := f.scheduler()
		if err != nil {
			return fmt.Errorf("preparing the scheduler to play it forward: %w", err)
		}
		bands[i] = s.Play(f.playback(i), q.now)
	}
	for i := range all {
		all[i].Start, all[i].Unpredicted = f.tell(all[i], bands)
	}
	return nil
}

// read predicts for how long everything runs that is played.
func (f *foresight) read(by *predictor, all []ledger.QueuedJob) error {
	note := func(id string, j job.Job) error {
		is, err := by.of(j)
		f.lengths[id], f.unsure[id] = is, !is.Known()
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(f.holders)) {
		if err := note(id, f.holders[id]); err != nil {
			return err
		}
	}
	for _, a := range f.pool.Allocations {
		if _, isJob := f.holders[a.ID]; isJob && f.onSilent(a) {
			f.unsure[a.ID] = true // nobody says that it has ended
		}
	}
	for _, w := range timedByTime(all) {
		if !isPlayed(w) || len(f.order)+len(f.early) == mostForeseen {
			continue
		}
		if err := note(w.ID, w.Job); err != nil {
			return err
		}
		if w.Code == ledger.WaitsForTime {
			f.early = append(f.early, w.Job)
		} else {
			f.order = append(f.order, w.ID)
		}
	}
	return nil
}

// timedByTime has those that wait for a time last, by that time: whoever comes first is foreseen first.
func timedByTime(all []ledger.QueuedJob) []ledger.QueuedJob {
	timed := func(w ledger.QueuedJob) time.Time {
		if w.Code == ledger.WaitsForTime {
			return w.NotBefore
		}
		return time.Time{}
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b ledger.QueuedJob) int {
		return timed(a).Compare(timed(b))
	})
}

// isPlayed reports whether the scheduler says when a job starts: others wait for something else than its end of work.
func isPlayed(w ledger.QueuedJob) bool {
	switch w.Code {
	case ledger.WaitsForJob, ledger.WaitsForNodes, ledger.WaitsForDaemon:
		return false
	}
	return !inReservation(w.Job)
}

// scheduler is the queue's, with the jobs alone that are played.
func (f *foresight) scheduler() (*scheduler.Scheduler, error) {
	q := f.queue
	q.order = f.order
	return q.schedulerWith(f.early)
}

// playback is what is expected with one of the chances.
func (f *foresight) playback(i int) scheduler.Playback {
	p := scheduler.Playback{Ends: map[string]time.Time{}, Unsure: f.unsure, Booked: f.booked(), Cycles: mostCycles,
		Refused: func(id string) bool { return f.isRefused(f.jobs[id]) }, Begin: f.beginAt(i)}
	for _, a := range f.pool.Allocations {
		if a.Live() && !a.Observed() {
			if at, known := f.endOf(a, i); known {
				p.Ends[a.ID] = at
			}
		}
	}
	return p
}

// endOf is when an allocation ends with one of the chances: a job's by what is predicted of it, another one's as
// leases of the pool do. Where nothing is known of a job, it may end at once, and ends at its limit.
func (f *foresight) endOf(a allocation.Allocation, i int) (at time.Time, known bool) {
	j, isJob := f.holders[a.ID]
	switch {
	case isJob && j.Ending.Is():
		return at, false
	case isJob && f.unsure[a.ID]:
		return f.now, i == 0
	case isJob:
		began := j.StartedAt
		if began.IsZero() {
			began = f.now
		}
		return began.Add(quantile(f.lengths[a.ID], i)), true
	case a.ActiveAt.IsZero() || a.Lease <= 0:
		return at, false
	}
	rest := f.remainingLease(f.now.Sub(a.ActiveAt), a.Window.End.Sub(a.ActiveAt), chances[i])
	if at = f.now.Add(rest); at.After(a.Window.End) {
		at = a.Window.End
	}
	return at, true
}

// remainingLease is for how long a lease is held from now on, with a chance.
func (f *foresight) remainingLease(held, lease time.Duration, chance float64) time.Duration {
	if lease <= 0 {
		return 0
	}
	part := min(float64(held)/float64(lease), 1) * learned.WholeLease
	rest := float64(f.leases.Remaining(time.Duration(part), chance)) / learned.WholeLease
	return time.Duration(rest * float64(lease))
}

func quantile(p runtimes.Prediction, i int) time.Duration {
	return [3]time.Duration{p.P10, p.P50, p.P90}[i]
}

// booked is what others have reserved in the pool, and what is being cleaned.
func (f *foresight) booked() []placement.Promised {
	all := f.dirty()
	for _, r := range f.pool.Reservations {
		if !r.Placed() || slices.ContainsFunc(r.Slots, func(slot int) bool { return slot >= f.pool.Pool.MaxNodes }) {
			continue
		}
		p := placement.Promised{ID: r.ID, From: r.Window.Start, Until: r.Window.End}
		for i, slot := range r.Slots {
			p.Spots = append(p.Spots, placementSpot(slot, r.Shape.On(i)))
		}
		all = append(all, p)
	}
	return all
}

// isRefused reports whether a job has waited although there were GPUs: admission or its limits keep it from them.
func (f *foresight) isRefused(j job.Job) bool {
	if lacksQuota(f.queue, j) {
		return false // what it holds already keeps it, and ends
	}
	since := j.WaitsSince()
	if j.NotBefore.After(since) {
		since = j.NotBefore
	}
	return f.now.Sub(since) > startsAtLatest
}

// beginAt tells when jobs begin that are given GPUs, and when they end: where no node is up one has to boot first.
func (f *foresight) beginAt(i int) func(string, placement.Placement, time.Time) (begins, ends time.Time) {
	warm := map[string]bool{}
	for _, n := range f.pool.Nodes {
		if n.State() == node.Ready {
			warm[nameOfSlot(n.Slot)] = true
		}
	}
	boot := f.pool.Pool.Boot.Quantile(chances[i])
	limits, ahead := map[string]time.Duration{}, map[string]time.Time{}
	for _, j := range f.early { // nodes are booted ahead of their time
		limits[j.ID], ahead[j.ID] = j.MaxRuntime, f.now.Add(boot)
	}
	return func(id string, spots placement.Placement, at time.Time) (begins, ends time.Time) {
		begins = at
		for _, s := range spots {
			if !warm[s.Node] {
				warm[s.Node] = true
				if begins = at.Add(boot); !ahead[id].IsZero() {
					begins = calendar.Later(at, ahead[id])
				}
			}
		}
		length := quantile(f.lengths[id], i)
		if f.unsure[id] && i > 0 {
			length = max(f.jobs[id].MaxRuntime, limits[id])
		}
		return begins, begins.Add(length)
	}
}

// tell says when a job is predicted to start, or why that cannot be said.
func (f *foresight) tell(w ledger.QueuedJob, bands [3]map[string]scheduler.Foreseen) (*ledger.PredictedTime, string) {
	switch {
	case w.Code == ledger.WaitsForJob:
		return nil, "it waits for another job"
	case w.Code == ledger.WaitsForNodes:
		return nil, "no nodes are up that it may run on"
	case w.Code == ledger.WaitsForDaemon:
		return nil, "no daemon is there that would start it"
	case inReservation(w.Job):
		at := w.NotBefore
		if at.Before(f.now) {
			at = f.now
		}
		return &ledger.PredictedTime{Band: ledger.Band{P10: at, P50: at, P90: at}, Basis: "what was reserved for it"}, ""
	}
	if _, played := f.lengths[w.ID]; !played {
		return nil, "starts are predicted of " + strconv.Itoa(mostForeseen) + " jobs, which come before it"
	}
	var at [3]time.Time
	for i, band := range bands {
		is, found := band[w.ID]
		if !found {
			return nil, f.whyNever(w)
		}
		at[i] = is.At
	}
	likely := bands[1][w.ID]
	if likely.Unsure {
		return nil, "of too few jobs like those before it is known how long they run"
	}
	out := &ledger.PredictedTime{Basis: f.basisOf(w, likely)}
	out.P50 = at[1]
	slices.SortFunc(at[:], time.Time.Compare)
	out.P10, out.P90 = at[0], at[2]
	return out, ""
}

func (f *foresight) whyNever(w ledger.QueuedJob) string {
	if w.Code == ledger.WaitsForGPUs && f.isRefused(w.Job) {
		return "no end of other work is known to let it start" + seeExplanation(w.ID)
	}
	return "no end of other work is known to let it start"
}

// seeExplanation names the command that says more.
func seeExplanation(id string) string { return ": forewarm jobs explain " + id }

// basisOf says what a predicted start rests on.
func (f *foresight) basisOf(w ledger.QueuedJob, is scheduler.Foreseen) string {
	if !is.Waited {
		return "GPUs that are free"
	}
	parts := []string{"how long what runs"}
	switch {
	case w.Position == 2:
		parts = append(parts, "and the job before it")
	case w.Position > 2:
		parts = append(parts, "and the "+strconv.Itoa(w.Position-1)+" jobs before it")
	}
	return strings.Join(append(parts, "should still take, by runs like it"), " ")
}
