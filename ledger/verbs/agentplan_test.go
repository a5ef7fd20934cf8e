package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func windowWanted(window calendar.Interval, gpus int) ledger.DemandWindow {
	return ledger.DemandWindow{Start: window.Start, End: window.End, GPUs: gpus, Probability: 0.5,
		ReasonCode: "recurring_pattern"}
}

func (w *world) setDemand(by ledger.Actor, windows ...ledger.DemandWindow) []ledger.WindowOutcome {
	w.Helper()
	outcomes, err := w.ledger.SetDemand(w.Context(), by, ledger.Demand{Pool: "lab", Windows: windows})
	require.NoError(w, err)
	require.Len(w, outcomes, len(windows))
	return outcomes
}

// coveredWindows are the windows that an agent's reservations cover, by GPUs.
func (w *world) coveredWindows(by ledger.Actor) map[calendar.Interval]int {
	w.Helper()
	found := map[calendar.Interval]int{}
	for _, r := range w.liveOf(by.KeyID) {
		found[r.Window] += r.Shape.GPUs()
	}
	return found
}

func TestTheSamePlanTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	plan := []ledger.DemandWindow{windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 3),
		windowWanted(w.windowAfter(3*time.Hour, 4*time.Hour), 1)}
	first := w.setDemand(bot, plan...)
	require.Equal(t, 2, first[0].Placed, "a whole node and a rest")
	require.Equal(t, map[calendar.Interval]int{w.windowAfter(time.Hour, 2*time.Hour): 3,
		w.windowAfter(3*time.Hour, 4*time.Hour): 1}, w.coveredWindows(bot))
	before, events := w.liveOf(bot.KeyID), len(w.readEvents(""))

	second := w.setDemand(bot, plan...)
	require.Equal(t, before, w.liveOf(bot.KeyID), "not even a version")
	require.Len(t, w.readEvents(""), events)
	for i := range second {
		require.Zero(t, second[i].Placed)
		require.Equal(t, first[i].Placed, second[i].Kept)
		require.ElementsMatch(t, first[i].Reservations, second[i].Reservations)
	}
}

func TestAPlanIsTheWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	hour := w.windowAfter(time.Hour, 2*time.Hour)
	w.setDemand(bot, windowWanted(hour, 4))
	ids := func() (ids []string) {
		for _, r := range w.liveOf(bot.KeyID) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	both := ids()
	require.Len(t, both, 2)

	w.setDemand(bot, windowWanted(hour, 2))
	require.Equal(t, map[calendar.Interval]int{hour: 2}, w.coveredWindows(bot), "shrunk")
	require.Subset(t, both, ids())

	kept := ids()
	w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 3*time.Hour), 2))
	require.Equal(t, map[calendar.Interval]int{w.windowAfter(time.Hour, 3*time.Hour): 2}, w.coveredWindows(bot),
		"its end moved")
	require.Equal(t, kept, ids(), "but it is the same reservation")

	w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 90*time.Minute), 2),
		windowWanted(w.windowAfter(5*time.Hour, 6*time.Hour), 1))
	require.Equal(t, map[calendar.Interval]int{w.windowAfter(time.Hour, 90*time.Minute): 2,
		w.windowAfter(5*time.Hour, 6*time.Hour): 1}, w.coveredWindows(bot))
	require.Subset(t, ids(), kept)

	w.setDemand(bot)
	require.Empty(t, w.liveOf(bot.KeyID), "an empty plan wants nothing")
}

func TestWhatIsKeptIsCountedAtItsNewLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	bot.Caps.MaxPerDay = 4 * money.USD // a GPU-hour is a dollar
	w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 3*time.Hour), 2))
	out := w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 2),
		windowWanted(w.windowAfter(4*time.Hour, 5*time.Hour), 2))
	require.Nil(t, out[1].Refused, "what was given up pays for it")
	require.Equal(t, 1, out[1].Placed)
	out = w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 2),
		windowWanted(w.windowAfter(4*time.Hour, 5*time.Hour), 2),
		windowWanted(w.windowAfter(6*time.Hour, 7*time.Hour), 1))
	require.NotNil(t, out[2].Refused, "a fifth dollar is one too many")
	require.Equal(t, []int{1, 1, 0}, []int{out[0].Kept, out[1].Kept, out[2].Placed})
}

func TestWindowsThatGetNoPlaceAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	w.mustReserve(w.newPerson("bob"), 6, w.windowAfter(time.Hour, 2*time.Hour))
	bot.Caps.MaxGPUs = 3
	out := w.setDemand(bot, windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 4),
		windowWanted(w.windowAfter(3*time.Hour, 4*time.Hour), 4),
		windowWanted(w.windowAfter(-time.Hour, -time.Minute), 1),
		windowWanted(w.windowAfter(5*time.Hour, 6*time.Hour), 1))
	for i, want := range []struct {
		placed  int
		refused bool
	}{{1, true}, {1, true}, {0, true}, {1, false}} {
		require.Equal(t, want.placed, out[i].Placed, i)
		require.Equal(t, want.refused, out[i].Refused != nil, i)
	}
	require.Len(t, w.liveOf(bot.KeyID), 3)
}

func TestAnAgentsPlanTouchesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	first, second := agentBeside(ann, "first"), agentBeside(ann, "second")
	own := w.mustReserve(ann, 1, w.windowAfter(time.Hour, 2*time.Hour))
	w.setDemand(first, windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 1))
	w.setDemand(second, windowWanted(w.windowAfter(time.Hour, 2*time.Hour), 1))
	w.setDemand(second)
	require.Len(t, w.liveOf(first.KeyID), 1)
	require.True(t, w.readReservation(own.ID).Placed())
}

func TestAPlanMayBeSentAgainWhileItsWindowRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	end := w.clock.Now().Add(2 * time.Hour)
	w.setDemand(bot, windowWanted(calendar.Interval{Start: end.Add(-time.Hour), End: end}, 2))
	w.pass(70 * time.Minute)
	before := w.liveOf(bot.KeyID)
	require.Equal(t, reservation.Ready, before[0].State())
	out := w.setDemand(bot, windowWanted(calendar.Interval{Start: w.clock.Now(), End: end}, 2))
	require.Equal(t, 1, out[0].Kept, "what is left of it is covered")
	require.Equal(t, before, w.liveOf(bot.KeyID))
}

func TestPlansThatCanNeverBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "agent")
	hour := w.windowAfter(time.Hour, 2*time.Hour)
	wrong := func(change func(*ledger.DemandWindow)) []ledger.DemandWindow {
		d := windowWanted(hour, 1)
		change(&d)
		return []ledger.DemandWindow{windowWanted(hour, 1), d}
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
	require.Empty(t, w.liveOf(bot.KeyID))
}
