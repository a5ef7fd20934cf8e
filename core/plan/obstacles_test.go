package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

func (w *world) foresee() *plan.Outlook { return plan.Foresee(w.liveSnapshot(), w.policy, w.now) }

func TestWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	at := func(hm string) time.Time { return clockTime(t, hm) }
	failing := func(w *world) { w.Supply.Failures = 99 }
	unfit := func(w *world) {
		for range 2 {
			w.Supply = w.Supply.FailedGate(w.now, w.now, time.Minute, "ecc")
		}
	}
	nothing := func(*world) {}
	for name, tc := range map[string]struct {
		story string
		set   func(*world)
		of    string
		want  []plan.Obstacle // without the node
	}{
		"a node, which is asked for": {
			"allocation a 1x8 0 1h", nothing, "a",
			[]plan.Obstacle{{Code: plan.LacksNode, Until: at("09:00")}},
		},
		"a node, which boots": {
			"node n 0 booting\n allocation a 1x8 0 1h", nothing, "a",
			[]plan.Obstacle{{Code: plan.LacksBoot}},
		},
		"a node that is on its way": {"node n 0 booting", nothing, "n", []plan.Obstacle{{Code: plan.LacksBoot}}},
		"a ready one lacks nothing": {"node n 0 ready", nothing, "n", nil},
		"a node that has to go": {
			"pool nodes=1\n node n 0 draining\n allocation a 1x8 0 1h", nothing, "a",
			[]plan.Obstacle{{Code: plan.LacksRemoval}},
		},
		"the provider has nothing": {
			"block 09:20\n allocation a 1x8 0 1h", nothing, "a",
			[]plan.Obstacle{{Code: plan.HeldRefused, Until: at("09:20")}},
		},
		"its machines are not fit": {"allocation a 1x8 0 1h", unfit, "a", []plan.Obstacle{{Code: plan.HeldUnfit}}},
		"one node is tried first": {
			"pool nodes=2\n node n 1 booting\n allocation a 2x8 0+1 1h", failing, "a",
			[]plan.Obstacle{{Code: plan.HeldTrial}, {Code: plan.LacksBoot, Slot: 1}},
		},
		"nobody knows it": {"", nothing, "a", nil},
		"a promise that warms": {
			"reservation r 09:10-10:00 1x8 0 person\n event r warm", nothing, "r",
			[]plan.Obstacle{{Code: plan.LacksNode, Until: at("09:00")}},
		},
		"one whose time has not come": {"reservation r 12:00-13:00 1x8 0 person", nothing, "r", nil},
		"a speculative one that may not warm": {
			"reservation r 09:10-10:00 1x8 0 agent speculative\n event r warm\n pause 09:30", nothing, "r",
			[]plan.Obstacle{{Code: plan.LacksPrewarm, Slot: -1, Until: at("09:30")}},
		},
		"a promise that may": {
			"reservation r 09:10-10:00 1x8 0 agent guaranteed\n event r warm\n pause 09:30", nothing, "r",
			[]plan.Obstacle{{Code: plan.LacksNode, Until: at("09:00")}},
		},
		"a promise that lost its slot": {
			"reservation r 12:00-13:00 4x8 0+1+2+3 person", func(w *world) { w.Pool.MaxNodes = 3 }, "r",
			[]plan.Obstacle{{Code: plan.LacksSlot, Slot: 3}},
		},
		"one that waits for a place": {"reservation r 12:00-13:00 1x8 - person", nothing, "r", nil},
	} {
		w := worldOf(t, tc.story)
		tc.set(w)
		got := w.foresee().Obstacles(tc.of)
		for i := range got {
			got[i].Node = nil
		}
		require.Equal(t, tc.want, got, name)
	}
}

func TestDevicesInOtherHandsStandInTheWay(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "pool nodes=1\n node n1 0 ready\n allocation a 1x6 0 1h")
	w.holdDevices("a")
	w.obeyCommand([]string{"clock", "09:20"})
	w.Allocations[0].Window.End = w.now
	w.obeyCommand([]string{"allocation", "b", "1x2", "0", "1h"})
	o := w.foresee()
	require.Empty(t, o.Obstacles("a"), "it has what it needs")
	require.Empty(t, o.Obstacles("b"), "two are free")
	w.Allocations[1].Shape.PerNode = 3
	require.Equal(t, []plan.Obstacle{
		{Code: plan.LacksDevices, Node: w.nodeOf("n1"), Until: clockTime(t, "10:00")},
	}, w.foresee().Obstacles("b"))
}

// A node that somebody waits for does not count against the cap, but those asked for after it
// do, and for as long as was said, even when its own request is older than the cap's window.
func TestAHeldBackNodeIsToldTheTurnThatItGets(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "pool nodes=3\n allocation a 1x8 0 2h")
	w.Pool.MaxCreates, w.Pool.CreateWindow = 1, 10*time.Minute
	w.planUntilSettled(func(plan.Result) {})
	w.obeyCommand([]string{"clock", "09:04"})
	w.obeyCommand([]string{"reservation", "r", "09:05-11:00", "2x8", "1+2", "person"})
	w.planUntilSettled(func(plan.Result) {})
	turn := clockTime(t, "09:14") // the node of a does not count, that on slot 1 does
	told := w.foresee().Obstacles("r")
	require.Len(t, told, 2)
	require.Equal(t, plan.LacksBoot, told[0].Code)
	require.Equal(t, plan.Obstacle{Code: plan.HeldCapped, Slot: 2, Until: turn}, told[1])
	for _, at := range []time.Time{clockTime(t, "09:10"), turn} {
		_, there := w.onSlot(2)
		require.False(t, there)
		w.now = at
		w.planUntilSettled(func(plan.Result) {})
	}
	_, there := w.onSlot(2)
	require.True(t, there, "%s", w)
}

func TestAWaitingAllocationThatLostItsSlot(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "allocation a 4x8 0+1+2+3 1h\n allocation b 1x8 0 1h")
	w.Pool.MaxNodes = 3
	require.Equal(t, []string{"a"}, w.foresee().Homeless())
	w.Pool.MaxNodes = 4
	require.Empty(t, w.foresee().Homeless())
}

func TestWhatComesNext(t *testing.T) {
	t.Parallel()
	at := func(hm string) time.Time { return clockTime(t, hm) }
	lead := worldOf(t, "").Boot.P95() + plan.Policy{}.WithDefaults().Guard
	for name, tc := range map[string]struct {
		story, of string
		want      []plan.Step
	}{
		"a promise": {"reservation r 12:00-13:00 1x8 0 person", "r", []plan.Step{
			{Code: plan.StepWarm, At: at("12:00").Add(-lead)}, {Code: plan.StepStart, At: at("12:00")},
			{Code: plan.StepNoShow, At: at("12:15")}, {Code: plan.StepEnd, At: at("13:00")},
		}},
		"an agent's is never missed": {"reservation r 12:00-13:00 1x8 0 agent", "r", []plan.Step{
			{Code: plan.StepWarm, At: at("12:00").Add(-lead)},
			{Code: plan.StepStart, At: at("12:00")}, {Code: plan.StepEnd, At: at("13:00")},
		}},
		"as short as the hold": {"reservation r 12:00-12:15 1x8 0 person", "r", []plan.Step{
			{Code: plan.StepWarm, At: at("12:00").Add(-lead)},
			{Code: plan.StepStart, At: at("12:00")}, {Code: plan.StepEnd, At: at("12:15")},
		}},
		"a paused speculative one": {"pause 23:00\n reservation r 12:00-13:00 1x8 0 agent speculative", "r",
			[]plan.Step{
				{Code: plan.StepStart, At: at("12:00")}, {Code: plan.StepEnd, At: at("13:00")},
			}},
		"one that began": {"reservation r 09:00-10:00 1x8 0 person\n event r warm", "r", []plan.Step{
			{Code: plan.StepNoShow, At: at("09:15")}, {Code: plan.StepEnd, At: at("10:00")},
		}},
		"one in the queue": {"reservation r 12:00-13:00 1x8 - person", "r", []plan.Step{
			{Code: plan.StepGivesUp, At: at("13:00")},
		}},
		"who waits": {"allocation a 1x8 0 1h 5m", "a", []plan.Step{{Code: plan.StepGivesUp, At: at("10:05")}}},
	} {
		require.Equal(t, tc.want, worldOf(t, tc.story).foresee().Next(tc.of), name)
	}
	w := worldOf(t, "node n 0 ready\n allocation a 1x8 0 1h")
	w.holdDevices("a")
	require.Equal(t, []plan.Step{{Code: plan.StepLease, At: at("10:00")}}, w.foresee().Next("a"))
	w.applyToAllocation("a", allocation.Release)
	require.Empty(t, w.foresee().Next("a"))
}

// What is left of a reservation of which somebody has claimed a part is kept to its end, and is no no-show then.
func TestWhatWasClaimedInPartIsKept(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "node n 0 ready\n reservation r 09:00-10:00 1x8 0 person\n event r warm\n event r ready")
	w.Reservations[0].PartOf = "r"
	require.Equal(t, []plan.Step{{Code: plan.StepEnd, At: clockTime(t, "10:00")}}, w.foresee().Next("r"))
	result := w.planUntilSettled(func(plan.Result) {})
	require.Equal(t, clockTime(t, "10:00"), result.Next)
	w.obeyCommand([]string{"clock", "09:59"})
	w.planUntilSettled(func(plan.Result) {})
	require.Equal(t, reservation.Ready, w.Reservations[0].State())
	w.obeyCommand([]string{"clock", "10:00"})
	w.planUntilSettled(func(r plan.Result) {
		for _, a := range r.Actions {
			require.Equal(t, plan.ReasonWindowEnded, a.Reason)
		}
	})
	require.Equal(t, reservation.Expired, w.Reservations[0].State())
}
