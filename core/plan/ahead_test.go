package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
)

// expectWork adds work that is expected to begin on slots, with eight GPUs on each, and to take an hour.
func (w *world) expectWork(id string, in time.Duration, slots ...int) {
	work := plan.Ahead{For: id, Slots: slots,
		Runs: calendar.Interval{Start: w.now.Add(in), End: w.now.Add(in + time.Hour)}}
	for range slots {
		work.GPUs = append(work.GPUs, 8)
	}
	w.Ahead = append(w.Ahead, work)
}

// Nodes are asked for their lead ahead of work that may not begin yet, kept until a moment after it was to, and not
// before and no longer.
func TestNodesAreReadyForWorkAhead(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 3)
	w.Pool.Timers.IdleRelease = time.Minute
	w.expectWork("job", 30*time.Minute, 1)
	start := w.now.Add(30 * time.Minute)
	lead := plan.Lead(w.Boot, w.policy)
	result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
	require.Empty(t, result.Actions)
	require.Equal(t, start.Add(-lead), result.Next, "when its lead time comes")
	w.now = result.Next
	result = plan.Compute(w.liveSnapshot(), w.policy, w.now)
	require.Len(t, result.Actions, 1)
	require.Equal(t, plan.BootNode, result.Actions[0].Kind)
	require.Equal(t, plan.ReasonAhead, result.Actions[0].Reason)
	require.Equal(t, 1, result.Actions[0].Slot)
	w.planUntilSettled(func(plan.Result) {})
	require.Len(t, w.Nodes, 1, "once")
	w.applyToNode(w.Nodes[0].ID, node.Provision, node.Boot, node.BecomeReady)
	w.Nodes[0].IdleSince = w.now
	for _, at := range []time.Duration{-time.Second, 0, 30 * time.Second} {
		w.now = start.Add(at)
		w.planUntilSettled(func(plan.Result) {})
		require.Equal(t, node.Ready, w.Nodes[0].State(), "it is kept, although it idles")
	}
	w.now = start.Add(2 * time.Minute)
	w.planUntilSettled(func(plan.Result) {})
	require.NotEqual(t, node.Ready, w.Nodes[0].State(), "and given up where nobody came")
}

// Nothing is made ready ahead where the pool, or whose work it is, is paused.
func TestNothingIsMadeReadyAheadWherePaused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pause func(w *world)
		boots bool
	}{
		"nobody":       {func(*world) {}, true},
		"the pool":     {func(w *world) { w.Pool.Paused = true }, false},
		"everybody":    {func(w *world) { w.Paused = map[string]time.Time{"": {}} }, false},
		"whose it is":  {func(w *world) { w.Paused = map[string]time.Time{"org_1": {}} }, false},
		"another one":  {func(w *world) { w.Paused = map[string]time.Time{"org_2": {}} }, true},
		"for a minute": {func(w *world) { w.Paused = map[string]time.Time{"org_1": w.now.Add(time.Minute)} }, false},
	} {
		w := newWidePool(t, 1)
		w.expectWork("job", time.Minute, 0)
		w.Ahead[0].OrganizationID = "org_1"
		tc.pause(w)
		result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
		require.Equal(t, tc.boots, len(result.Actions) == 1, name)
		if name == "for a minute" {
			require.Equal(t, w.now.Add(time.Minute), result.Next)
		}
	}
}

// Nothing is asked for where a promise is in the way, and nothing that the cap keeps for promises.
func TestWorkAheadGivesWayToPromises(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 1)
	w.addPromise("later", 1, 40*time.Minute, time.Hour)
	w.expectWork("job", time.Minute, 0)
	require.Empty(t, plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions)
	w = newWidePool(t, 2)
	w.Pool.MaxCreates, w.Pool.CreateWindow = 1, 5*time.Minute
	w.addPromise("soon", 1, time.Minute, time.Hour)
	w.expectWork("job", time.Minute, 1)
	result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
	boots := slices.DeleteFunc(result.Actions, func(a plan.Action) bool { return a.Kind != plan.BootNode })
	require.Len(t, boots, 1)
	require.Equal(t, plan.ReasonPrewarm, boots[0].Reason)
	require.Len(t, result.Withheld, 1, "its turn comes later")
}

// Work ahead changes nothing for what is promised: the same is done for that, on the same slots.
func TestWorkAheadHarmsNoPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWidePool(t, rapid.IntRange(1, 4).Draw(t, "slots"))
		w.Pool.MaxCreates, w.Pool.CreateWindow = rapid.IntRange(1, 4).Draw(t, "cap"), 5*time.Minute
		w.readyNodes(rapid.IntRange(0, w.Pool.MaxNodes).Draw(t, "ready"), time.Minute)
		minutes := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(1, 90).Draw(t, name)) * time.Minute
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "promises") {
			from := minutes("from")
			w.addPromise(fmt.Sprint("r", i), rapid.IntRange(1, w.Pool.MaxNodes).Draw(t, "nodes"), from, from+minutes("for"))
		}
		without := promiseActions(w)
		for i := range rapid.IntRange(1, 3).Draw(t, "work") {
			w.expectWork(fmt.Sprint("job", i), minutes("in"), rapid.IntRange(0, w.Pool.MaxNodes).Draw(t, "slot"))
		}
		require.Equal(t, without, promiseActions(w))
	})
}

// promiseActions are what a plan does for promises: all but what it does for work ahead and to nodes that are idle.
func promiseActions(w *world) (all []string) {
	for _, a := range plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions {
		if a.Kind != plan.DrainNode && a.Reason != plan.ReasonAhead {
			all = append(all, fmt.Sprint(a.Kind, a.Subject, a.Slot, a.Slots, a.Reason))
		}
	}
	return all
}
