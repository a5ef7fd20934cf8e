package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func desire(window calendar.Interval, gpus int) ledger.DemandWindow {
	return ledger.DemandWindow{Start: window.Start, End: window.End, GPUs: gpus, Probability: 0.5,
		ReasonCode: "recurring_pattern"}
}

func (w *world) put(by ledger.Actor, windows ...ledger.DemandWindow) []ledger.WindowOutcome {
	w.Helper()
	outcomes, err := w.ledger.SetDemand(w.Context(), by, ledger.Demand{Pool: "lab", Windows: windows})
	require.NoError(w, err)
	require.Len(w, outcomes, len(windows))
	return outcomes
}

// spans are the windows that an agent's reservations cover, by GPUs.
func (w *world) spans(by ledger.Actor) map[calendar.Interval]int {
	w.Helper()
	found := map[calendar.Interval]int{}
	for _, r := range w.live(by.KeyID) {
		found[r.Window] += r.Shape.GPUs()
	}
	return found
}

func TestTheSamePlanTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	plan := []ledger.DemandWindow{desire(w.after(time.Hour, 2*time.Hour), 3),
		desire(w.after(3*time.Hour, 4*time.Hour), 1)}
	first := w.put(bot, plan...)
	require.Equal(t, 2, first[0].Placed, "a whole node and a rest")
	require.Equal(t, map[calendar.Interval]int{w.after(time.Hour, 2*time.Hour): 3,
		w.after(3*time.Hour, 4*time.Hour): 1}, w.spans(bot))
	before, events := w.live(bot.KeyID), len(w.events(""))

	second := w.put(bot, plan...)
	require.Equal(t, before, w.live(bot.KeyID), "not even a version")
	require.Len(t, w.events(""), events)
	for i := range second {
		require.Zero(t, second[i].Placed)
		require.Equal(t, first[i].Placed, second[i].Kept)
		require.ElementsMatch(t, first[i].Reservations, second[i].Reservations)
	}
}

func TestAPlanIsTheWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	hour := w.after(time.Hour, 2*time.Hour)
	w.put(bot, desire(hour, 4))
	ids := func() (ids []string) {
		for _, r := range w.live(bot.KeyID) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	both := ids()
	require.Len(t, both, 2)

	w.put(bot, desire(hour, 2))
	require.Equal(t, map[calendar.Interval]int{hour: 2}, w.spans(bot), "shrunk")
	require.Subset(t, both, ids())

	kept := ids()
	w.put(bot, desire(w.after(time.Hour, 3*time.Hour), 2))
	require.Equal(t, map[calendar.Interval]int{w.after(time.Hour, 3*time.Hour): 2}, w.spans(bot), "its end moved")
	require.Equal(t, kept, ids(), "but it is the same reservation")

	w.put(bot, desire(w.after(time.Hour, 90*time.Minute), 2), desire(w.after(5*time.Hour, 6*time.Hour), 1))
	require.Equal(t, map[calendar.Interval]int{w.after(time.Hour, 90*time.Minute): 2,
		w.after(5*time.Hour, 6*time.Hour): 1}, w.spans(bot))
	require.Subset(t, ids(), kept)

	w.put(bot)
	require.Empty(t, w.live(bot.KeyID), "an empty plan wants nothing")
}

func TestWhatIsKeptIsCountedAtItsNewLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	bot.Caps.MaxPerDay = 4 * money.USD // a GPU-hour is a dollar
	w.put(bot, desire(w.after(time.Hour, 3*time.Hour), 2))
	out := w.put(bot, desire(w.after(time.Hour, 2*time.Hour), 2), desire(w.after(4*time.Hour, 5*time.Hour), 2))
	require.Nil(t, out[1].Refused, "what was given up pays for it")
	require.Equal(t, 1, out[1].Placed)
	out = w.put(bot, desire(w.after(time.Hour, 2*time.Hour), 2), desire(w.after(4*time.Hour, 5*time.Hour), 2),
		desire(w.after(6*time.Hour, 7*time.Hour), 1))
	require.NotNil(t, out[2].Refused, "a fifth dollar is one too many")
	require.Equal(t, []int{1, 1, 0}, []int{out[0].Kept, out[1].Kept, out[2].Placed})
}

func TestWindowsThatGetNoPlaceAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	w.reserve(w.person("bob"), 6, w.after(time.Hour, 2*time.Hour))
	bot.Caps.MaxGPUs = 3
	out := w.put(bot, desire(w.after(time.Hour, 2*time.Hour), 4), desire(w.after(3*time.Hour, 4*time.Hour), 4),
		desire(w.after(-time.Hour, -time.Minute), 1),
		desire(w.after(5*time.Hour, 6*time.Hour), 1))
	for i, want := range []struct {
		placed  int
		refused bool
	}{{1, true}, {1, true}, {0, true}, {1, false}} {
		require.Equal(t, want.placed, out[i].Placed, i)
		require.Equal(t, want.refused, out[i].Refused != nil, i)
	}
	require.Len(t, w.live(bot.KeyID), 3)
}

func TestAnAgentsPlanTouchesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	first, second := agent(ann, "first"), agent(ann, "second")
	own := w.reserve(ann, 1, w.after(time.Hour, 2*time.Hour))
	w.put(first, desire(w.after(time.Hour, 2*time.Hour), 1))
	w.put(second, desire(w.after(time.Hour, 2*time.Hour), 1))
	w.put(second)
	require.Len(t, w.live(first.KeyID), 1)
	require.True(t, w.reservation(own.ID).Placed())
}

func TestAPlanMayBeSentAgainWhileItsWindowRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	end := w.clock.Now().Add(2 * time.Hour)
	w.put(bot, desire(calendar.Interval{Start: end.Add(-time.Hour), End: end}, 2))
	w.pass(70 * time.Minute)
	before := w.live(bot.KeyID)
	require.Equal(t, reservation.Ready, before[0].State())
	out := w.put(bot, desire(calendar.Interval{Start: w.clock.Now(), End: end}, 2))
	require.Equal(t, 1, out[0].Kept, "what is left of it is covered")
	require.Equal(t, before, w.live(bot.KeyID))
}

func TestPlansThatCanNeverBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agent(w.person("ann"), "agent")
	hour := w.after(time.Hour, 2*time.Hour)
	wrong := func(change func(*ledger.DemandWindow)) []ledger.DemandWindow {
		d := desire(hour, 1)
		change(&d)
		return []ledger.DemandWindow{desire(hour, 1), d}
	}
	for field, windows := range map[string][]ledger.DemandWindow{
		"windows":                make([]ledger.DemandWindow, ledger.MaxWindows+1),
		"windows[1].end":         wrong(func(d *ledger.DemandWindow) { d.End = d.Start }),
		"windows[1].gpus":        wrong(func(d *ledger.DemandWindow) { d.GPUs = 0 }),
		"windows[1].probability": wrong(func(d *ledger.DemandWindow) { d.Probability = 1.5 }),
	} {
		_, err := w.ledger.SetDemand(t.Context(), bot, ledger.Demand{Pool: "lab", Windows: windows})
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
	require.Empty(t, w.live(bot.KeyID))
}
