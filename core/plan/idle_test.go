package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
)

// holding is a pool with one allocation, which holds its GPUs from dawn for a day.
func holding(t require.TestingT, timers capacity.Timers) *world {
	w := &world{t: t, now: dawn, made: 1}
	w.Pool = capacity.Pool{ID: "pool", PerNode: 1, MaxNodes: 1, MinNodes: 1, Timers: timers}
	w.Boot.Prior50, w.Boot.Prior95 = time.Minute, 2*time.Minute
	w.Nodes = []node.Node{node.New("n1", "pool", 0, 1, dawn)}
	w.applyToNode("n1", node.Provision, node.Boot, node.BecomeReady)
	w.Allocations = []allocation.Allocation{allocation.New(allocation.Allocation{ID: "a", PoolID: "pool",
		Shape: capacity.Shape{Nodes: 1, PerNode: 1}, Slots: []int{0}, Lease: 24 * time.Hour,
		Window: calendar.Interval{Start: dawn, End: dawn.Add(24 * time.Hour)}}, dawn)}
	w.planUntilSettled(func(plan.Result) {})
	require.Equal(t, allocation.Active, w.allocationOf("a").State())
	return w
}

// planAt plans at a time, with GPUs that have been idle since another; zero: they are not, or
// nobody looks. It returns what was done with the allocation, and when to look again.
func (w *world) planAt(now, idleSince time.Time) (did []plan.Kind, next time.Time) {
	w.now, w.Idle = now, nil
	if !idleSince.IsZero() {
		w.Idle = map[string]plan.Idleness{"a": {Since: idleSince, Seen: now}}
	}
	result := w.planUntilSettled(func(r plan.Result) {
		for _, a := range r.Actions {
			if a.Subject == "a" {
				did = append(did, a.Kind)
			}
		}
	})
	return did, result.Next
}

var warnThenReclaim = capacity.Timers{IdleRelease: time.Hour, IdleWarn: time.Hour, IdleReclaim: 2 * time.Hour}

func TestAHolderIsWarnedAndThenLosesIdleGPUs(t *testing.T) {
	t.Parallel()
	w, since := holding(t, warnThenReclaim), dawn.Add(10*time.Minute)
	did, next := w.planAt(since.Add(59*time.Minute), since)
	require.Empty(t, did)
	require.Equal(t, since.Add(time.Hour+30*time.Second), next, "what was seen then may come a little late")
	did, next = w.planAt(next, since)
	require.Equal(t, []plan.Kind{plan.WarnIdle}, did)
	warned := since.Add(time.Hour + 30*time.Second)
	require.Equal(t, warned.Add(time.Hour+30*time.Second), next)
	require.Contains(t, w.foreseen("a"), plan.Step{Code: plan.StepReclaim, At: warned.Add(time.Hour)})
	did, _ = w.planAt(warned.Add(59*time.Minute), since)
	require.Empty(t, did, "it was warned of this, and has an hour from then on")
	did, _ = w.planAt(next, since)
	require.Equal(t, []plan.Kind{plan.ReclaimIdle}, did)
	require.Equal(t, allocation.Expired, w.allocationOf("a").State())
}

// Idleness of which nobody told the planner is found all the same.
func TestGPUsInUseAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := holding(t, warnThenReclaim)
	_, next := w.planAt(dawn.Add(time.Hour), time.Time{})
	require.Equal(t, dawn.Add(2*time.Hour), next)
	w = holding(t, capacity.Timers{IdleRelease: time.Hour})
	_, next = w.planAt(dawn.Add(time.Hour), time.Time{})
	require.Equal(t, dawn.Add(24*time.Hour), next, "the end of the lease")
}

func (w *world) foreseen(id string) []plan.Step { return w.foresee().Next(id) }

func TestWhatSavesIdleGPUs(t *testing.T) {
	t.Parallel()
	long := dawn.Add(20 * time.Hour)
	for name, tc := range map[string]struct {
		timers capacity.Timers
		idle   time.Time
		set    func(*world)
		want   []plan.Kind
	}{
		"no policy":          {capacity.Timers{}, dawn, nil, nil},
		"nobody looks":       {warnThenReclaim, time.Time{}, nil, nil},
		"they were used":     {warnThenReclaim, long.Add(-time.Minute), nil, nil},
		"only a warning":     {capacity.Timers{IdleWarn: time.Hour}, dawn, nil, []plan.Kind{plan.WarnIdle}},
		"the warning is due": {warnThenReclaim, dawn, nil, []plan.Kind{plan.WarnIdle}},
		"its own scheduler's": {warnThenReclaim, dawn, func(w *world) { w.Pool.Observed = true },
			nil},
		"it is being released": {warnThenReclaim, dawn,
			func(w *world) { w.applyToAllocation("a", allocation.Release) }, nil},
		"warned of what it did before": {warnThenReclaim, long.Add(-3 * time.Hour),
			func(w *world) { w.allocationOf("a").IdleWarnedAt = long.Add(-4 * time.Hour) }, []plan.Kind{plan.WarnIdle}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := holding(t, tc.timers)
			if tc.set != nil {
				tc.set(w)
			}
			did, _ := w.planAt(long, tc.idle)
			require.Equal(t, tc.want, did)
		})
	}
}

func TestWhatWasSeenLongAgoWarnsNobody(t *testing.T) {
	t.Parallel()
	w := holding(t, warnThenReclaim)
	w.now = dawn.Add(3 * time.Hour)
	w.Idle = map[string]plan.Idleness{"a": {Since: dawn, Seen: dawn.Add(59 * time.Minute)}}
	require.Empty(t, plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions)
}

// Whatever GPUs do, and whenever somebody looks: nobody loses GPUs that were not seen to be idle
// for as long as the pool says, without a warning of the same idleness and all the time
// that the pool gives after it; nobody is warned twice of it; and longer timers end nothing
// sooner.
func TestNobodyLosesGPUsUnwarned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		minutes := func(label string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(r, label)) * time.Minute
		}
		timers := capacity.Timers{IdleWarn: minutes("warn", 5, 60)}
		timers.IdleReclaim = timers.IdleWarn + minutes("more", 1, 60)
		patient := timers
		patient.IdleWarn += minutes("later", 0, 30)
		patient.IdleReclaim = patient.IdleWarn + (timers.IdleReclaim - timers.IdleWarn) + minutes("patience", 0, 30)
		w, other := holding(r, timers), holding(r, patient)
		now, since, warned := dawn, time.Time{}, time.Time{}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			now = now.Add(minutes("step", 1, 40))
			switch rapid.SampledFrom([]string{"idle", "idle", "idle", "idle", "used"}).Draw(r, "what") {
			case "used":
				since = time.Time{}
			case "idle":
				if since.IsZero() {
					since = now.Add(-time.Minute)
				}
			}
			did, _ := w.planAt(now, since)
			later, _ := other.planAt(now, since)
			require.Subset(r, append(did, plan.WarnIdle), later, "patience ended something sooner")
			for _, kind := range did {
				require.False(r, since.IsZero())
				if kind == plan.WarnIdle {
					require.False(r, warned.After(since), "warned twice")
					require.GreaterOrEqual(r, now.Sub(since), timers.IdleWarn)
					warned = now
					continue
				}
				require.Equal(r, plan.ReclaimIdle, kind)
				require.True(r, warned.After(since))
				require.GreaterOrEqual(r, now.Sub(since), timers.IdleReclaim)
				require.GreaterOrEqual(r, now.Sub(warned), timers.IdleReclaim-timers.IdleWarn)
				return
			}
		}
	})
}
