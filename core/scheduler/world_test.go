package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// world is a scheduler with jobs that end when they want, and at their limit at the
// latest.
type world struct {
	s       *scheduler.Scheduler
	policy  scheduler.Policy
	now     time.Time
	ends    map[string]time.Time
	jobs    map[string]scheduler.Job
	starts  map[string]time.Time // that are promised
	leaveBy map[string]time.Time
	next    int
	broken  bool // nodes fail, so that promises may move
}

func drawPolicy(t *rapid.T) scheduler.Policy {
	p := scheduler.Policy{
		Order: rapid.SampledFrom([]scheduler.Order{scheduler.Balanced, scheduler.Arrival, scheduler.Multifactor,
			scheduler.ShortestPredicted, scheduler.LeastAttained}).Draw(t, "order"),
		Classes:     map[string]scheduler.Class{"high": {Level: 1}, "low": {Level: -1}},
		Tenants:     map[string]scheduler.Tenant{"b": {Weight: 2, MostGPU: 9}},
		ShareWeight: rapid.SampledFrom([]float64{0, 1}).Draw(t, "share weight"),
		Overdue:     10 * time.Hour,
		Promises:    rapid.IntRange(0, 4).Draw(t, "promises"),
	}
	if rapid.Bool().Draw(t, "preemption") {
		p.Preemption = scheduler.Preemption{Enabled: true, LoseWork: rapid.Bool().Draw(t, "lose work"),
			Grace: time.Duration(rapid.IntRange(0, 2).Draw(t, "grace")) * 10 * time.Minute}
	}
	return p
}

func drawWorld(t *rapid.T) *world {
	w := &world{policy: drawPolicy(t), now: noon, ends: map[string]time.Time{}, jobs: map[string]scheduler.Job{},
		starts: map[string]time.Time{}, leaveBy: map[string]time.Time{}}
	nodes := make([]placement.Node, rapid.IntRange(1, 5).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i] = placement.Node{ID: fmt.Sprint("n", i), Group: fmt.Sprint("r", i/2),
			Kind: placement.Kind{GPUs: 4, MemoryMiB: 1000, Shared: i == 0}}
	}
	var err error
	w.s, err = scheduler.New(w.policy, nodes)
	require.NoError(t, err)
	return w
}

func (w *world) submit(t *rapid.T) {
	limit := time.Duration(rapid.IntRange(1, 8).Draw(t, "limit")) * time.Hour
	j := scheduler.Job{
		ID: fmt.Sprintf("j%03d", w.next), Tenant: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"),
		User: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "user"), MaxRuntime: limit,
		Class:     rapid.SampledFrom([]string{"", "high", "low"}).Draw(t, "class"),
		Predicted: limit / time.Duration(rapid.IntRange(1, 3).Draw(t, "predicted")),
		NotBefore: w.now.Add(time.Duration(rapid.IntRange(-3, 1).Draw(t, "not before")) * time.Hour),
		Eligible:  w.now, Preemptible: rapid.Bool().Draw(t, "preemptible"),
		Checkpoint: time.Duration(rapid.IntRange(0, 1).Draw(t, "checkpoint")) * time.Hour,
	}
	j.Request.Shape = capacity.Shape{Nodes: rapid.IntRange(1, 3).Draw(t, "ranks"),
		PerNode: rapid.IntRange(1, 5).Draw(t, "GPUs")}
	j.Request.Near = placement.Nearness(rapid.IntRange(0, 2).Draw(t, "near"))
	if rapid.IntRange(0, 5).Draw(t, "part") == 0 {
		j.Request.Part = placement.Part{MemoryMiB: 300, Compute: 300}
	}
	if rapid.IntRange(0, 2).Draw(t, "grouped") == 0 {
		j.Group = rapid.SampledFrom([]scheduler.Group{{Name: "g", Most: 1}, {Name: "h", Most: 2}}).Draw(t, "group")
	}
	w.next++
	w.jobs[j.ID] = j
	require.NoError(t, w.s.Submit(j, w.now))
}

// pass lets time go on to a moment, at which what has to be over by then is over.
func (w *world) pass(t *rapid.T) {
	to := w.now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "minutes")) * time.Minute)
	for _, r := range w.s.Snapshot().Running {
		if at, leaves := w.leaveBy[r.ID]; leaves && !at.After(to) {
			to = at // it has to leave just then
		}
	}
	for _, at := range w.starts {
		if at.After(w.now) && at.Before(to) {
			to = at // a promise is kept in time only by who looks in time
		}
	}
	w.now = to
	for _, r := range w.s.Snapshot().Running {
		if at, leaves := w.leaveBy[r.ID]; leaves && !at.After(to) {
			require.True(t, w.s.Requeue(r.ID, to, time.Time{}))
			delete(w.leaveBy, r.ID)
		} else if !w.ends[r.ID].After(to) {
			require.True(t, w.s.Finish(r.ID, to))
			delete(w.leaveBy, r.ID)
		}
	}
}

func (w *world) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2, 3, 4:
		w.submit(t)
	case 5, 6, 7:
		w.pass(t)
	case 8:
		if all := w.s.Snapshot().Waiting; len(all) > 0 {
			id := rapid.SampledFrom(all).Draw(t, "cancelled").ID
			require.True(t, w.s.Cancel(id))
			delete(w.starts, id)
		}
	default:
		if w.broken {
			nodes := w.s.Snapshot().Nodes
			x := placement.Condition{Drained: rapid.Bool().Draw(t, "drained"),
				Celsius: rapid.SampledFrom([]int{40, 80, 90}).Draw(t, "°C")}
			require.True(t, w.s.SetCondition(rapid.SampledFrom(nodes).Draw(t, "node").ID, x, w.now))
		}
	}
}

// cycle decides, and holds the decision to what every decision must be.
func (w *world) cycle(t *rapid.T) scheduler.Decision {
	before := w.s.Snapshot()
	d := w.s.Cycle(w.now)
	after := w.s.Snapshot()
	for _, s := range d.Starts {
		j := w.jobs[s.Job]
		w.ends[s.Job] = w.now.Add(min(j.Predicted, j.MaxRuntime))
		if at, promised := w.starts[s.Job]; promised && !w.broken {
			require.False(t, w.now.After(at), "%s starts after it was promised to", s.Job)
		}
		delete(w.starts, s.Job)
		requireGang(t, j, s.Spots)
	}
	for _, p := range d.Promised {
		if at, promised := w.starts[p.ID]; promised && !w.broken && !p.Preempting {
			require.True(t, p.From.Before(at), "the promise to %s moves from %v to %v", p.ID, at, p.From)
		}
		w.starts[p.ID] = p.From
	}
	for _, p := range d.Plans {
		for _, v := range p.Victims {
			w.leaveBy[v.Job] = p.LeaveBy
		}
	}
	w.requireOneHand(t, after)
	requireGroups(t, after)
	w.requirePlans(t, before, d)
	w.requirePlaceable(t, before, d)
	return d
}

func requireGang(t *rapid.T, j scheduler.Job, spots placement.Placement) {
	sum := 0
	for _, s := range spots {
		sum += s.GPUs
	}
	require.Equal(t, j.Request.GPUs(), sum, "all of %s or nothing", j.ID)
}

func (w *world) requireOneHand(t *rapid.T, after scheduler.Snapshot) {
	_, err := scheduler.Restore(w.policy, after)
	require.NoError(t, err, "the state after a cycle is one that can be")
}

// requireGroups checks that no group holds more than it may.
func requireGroups(t *rapid.T, after scheduler.Snapshot) {
	held := map[scheduler.Group]int{}
	for _, r := range after.Running {
		if held[r.Group]++; r.Group.Most > 0 {
			require.LessOrEqual(t, held[r.Group], r.Group.Most, "of %s", r.Group.Name)
		}
	}
}

// requirePlaceable checks that nothing is done for a job that fits on no nodes at all.
func (w *world) requirePlaceable(t *rapid.T, before scheduler.Snapshot, d scheduler.Decision) {
	for _, j := range before.Waiting {
		empty, err := placement.New(w.policy.Placement, before.Nodes)
		require.NoError(t, err)
		for _, n := range before.Nodes {
			empty.SetCondition(n.ID, placement.Condition{}, w.now)
		}
		empty.Advance(w.now.Add(24 * time.Hour))
		if _, fits := empty.Find(j.Request, w.now, w.now.Add(time.Hour)); fits {
			continue
		}
		require.False(t, slices.ContainsFunc(d.Promised, func(p scheduler.Promise) bool { return p.ID == j.ID }))
		require.False(t, slices.ContainsFunc(d.Plans, func(p scheduler.Plan) bool { return p.For == j.ID }))
	}
}

// requirePlans checks that a first plan lets its job start, and that each of its victims is needed.
func (w *world) requirePlans(t *rapid.T, before scheduler.Snapshot, d scheduler.Decision) {
	if len(d.Plans) == 0 || len(d.Starts) > 0 || len(d.Promised) != 1 || len(before.Promises) > 0 {
		return // later decisions of the cycle have been made meanwhile
	}
	plan := d.Plans[0]
	for spared := -1; spared < len(plan.Victims); spared++ {
		from := before
		from.Promises = nil
		isOther := func(j scheduler.Job) bool { return j.ID != plan.For }
		// Others whose time came in this very cycle wait, too, and could start where the victims were.
		from.Waiting = slices.DeleteFunc(slices.Clone(before.Waiting), isOther)
		from.Early = slices.DeleteFunc(slices.Clone(before.Early), isOther)
		s, err := scheduler.Restore(w.policy, from)
		require.NoError(t, err)
		for i, v := range plan.Victims {
			if i != spared {
				require.True(t, s.Finish(v.Job, w.now))
			}
		}
		starts := s.Cycle(w.now).Starts
		require.Equal(t, spared < 0, len(starts) == 1, "victim %d spared of %+v", spared, plan)
	}
}

func shuffle(seed uint64, from scheduler.Snapshot) scheduler.Snapshot {
	rng := rand.New(rand.NewPCG(seed, 3))
	from.Nodes, from.Waiting = slices.Clone(from.Nodes), slices.Clone(from.Waiting)
	from.Running, from.Users = slices.Clone(from.Running), slices.Clone(from.Users)
	rng.Shuffle(len(from.Nodes), func(i, j int) { from.Nodes[i], from.Nodes[j] = from.Nodes[j], from.Nodes[i] })
	rng.Shuffle(len(from.Waiting), func(i, j int) { from.Waiting[i], from.Waiting[j] = from.Waiting[j], from.Waiting[i] })
	rng.Shuffle(len(from.Running), func(i, j int) { from.Running[i], from.Running[j] = from.Running[j], from.Running[i] })
	rng.Shuffle(len(from.Users), func(i, j int) { from.Users[i], from.Users[j] = from.Users[j], from.Users[i] })
	return from
}

// Any history: no GPU in two hands, gangs whole, promises kept, plans minimal, and
// nothing left that could start.
func TestEveryDecisionIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t)
			if len(w.cycle(t).Plans) > 0 {
				continue // who leaves ends sooner, which may let others start at once
			}
			again := w.cycle(t)
			require.Empty(t, again.Starts, "they could have started before")
			require.Empty(t, again.Broken)
		}
	})
}

// A scheduler that was told of every change decides what one decides that is made anew
// from the state, in whatever order it is listed; and the same state gives the same
// decision again.
func TestIncrementalIsFromScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.broken = true
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step(t)
			from := w.s.Snapshot()
			anew, err := scheduler.Restore(w.policy, shuffle(rapid.Uint64().Draw(t, "seed"), from))
			require.NoError(t, err)
			require.Equal(t, from, anew.Snapshot())
			want := anew.Cycle(w.now)
			require.Equal(t, want, w.cycle(t))
			require.Equal(t, anew.Snapshot(), w.s.Snapshot())
		}
	})
}
