package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
)

// worldOf is a world in which the lines of a story have happened (see TestStories).
func worldOf(t *testing.T, story string) *world {
	w := &world{t: t, now: clockTime(t, "09:00")}
	w.obeyCommand(strings.Fields("pool nodes=4 gpus=8 min=0 hold=15m idle=10m boot=2m p95=4m"))
	for line := range strings.Lines(story) {
		if words := strings.Fields(line); len(words) > 0 {
			w.obeyCommand(words)
		}
	}
	return w
}

// holdDevices gives an allocation its devices.
func (w *world) holdDevices(id string) {
	require.True(w.t, w.activateAllocation(id), "%s gets its devices", id)
}

func (w *world) waitFacts(id string) (wait.Facts, bool) {
	f, ok := plan.Foresee(w.liveSnapshot(), w.policy, w.now).Waiting(id)
	f.Boot, f.Leases = learned.BootTimes{}, learned.LeaseUse{}
	return f, ok
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

func TestWhoWaitsForNodes(t *testing.T) {
	t.Parallel()
	three := []time.Duration{minutes(3)}
	for name, tc := range map[string]struct {
		story string
		of    string
		want  wait.Facts
		waits bool
	}{
		"a node that boots": {"node n1 0 booting\n clock 09:03\n allocation a 1x8 0 1h", "a",
			wait.Facts{Ages: three}, true},
		"one that boots, and one to ask for": {
			"node n1 1 booting\n clock 09:03\n allocation a 2x8 0+1 1h", "a", wait.Facts{Ages: three, Missing: 1},
			true,
		},
		"while the provider refuses": {
			"block 09:20\n allocation a 1x8 0 1h", "a", wait.Facts{Missing: 1, Blocked: minutes(20)}, true,
		},
		"a warming promise": {
			"reservation r 09:10-10:00 1x8 0 person\n event r warm", "r", wait.Facts{Missing: 1}, true,
		},
		"one that is booked": {"reservation r 12:00-13:00 1x8 0 person", "r", wait.Facts{}, false},
		"one that is over": {
			"reservation r 09:10-10:00 1x8 0 person\n event r warm\n clock 10:00", "r", wait.Facts{}, false,
		},
		"a paused speculative one": {
			"pause 11:00\n reservation r 09:10-10:00 1x8 0 agent speculative", "r", wait.Facts{}, false,
		},
		"nobody": {"", "nobody", wait.Facts{}, false},
	} {
		w := worldOf(t, tc.story)
		f, waits := w.waitFacts(tc.of)
		require.Equal(t, tc.waits, waits, name)
		if waits {
			require.Equal(t, tc.want, f, name)
		}
	}
}

// Somebody who should have gone holds the devices still: their lease is what is
// waited for.
func TestWhoWaitsForDevices(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "node n1 0 ready\n allocation a 1x6 0 1h")
	w.holdDevices("a")
	w.obeyCommand([]string{"clock", "09:20"})
	w.Allocations[0].Window.End = w.now // it is let go, and its devices are not
	w.obeyCommand(strings.Fields("allocation b 1x4 0 1h"))
	f, waits := w.waitFacts("b")
	require.True(t, waits)
	lease := wait.Place{Room: minutes(40), Holds: []wait.Hold{{Age: minutes(20), Lease: minutes(60)}}}
	require.Equal(t, wait.Facts{Need: 1, Places: []wait.Place{lease}}, f)

	_, waits = w.waitFacts("a")
	require.False(t, waits, "who holds devices waits for none")
	w.Allocations[1].Shape.PerNode = 2
	f, waits = w.waitFacts("b")
	require.True(t, waits)
	require.Equal(t, wait.Facts{}, f, "two are free beside six")
}

func TestWhoWaitsForAPlace(t *testing.T) {
	t.Parallel()
	story := `pool nodes=2
		node n1 0 ready
		node n2 1 ready
		allocation a 1x8 0 1h
		reservation r 09:00-09:30 1x8 1 person
		reservation w 09:10-10:40 1x8 - person`
	w := worldOf(t, story)
	w.holdDevices("a")
	w.obeyCommand([]string{"clock", "09:05"})
	booked := wait.Place{Room: minutes(25), Fixed: minutes(25)}
	leased := wait.Place{Room: minutes(55), Holds: []wait.Hold{{Age: minutes(5), Lease: minutes(60)}}}
	f, waits := w.waitFacts("w")
	require.True(t, waits)
	require.Equal(t, wait.Facts{Need: 1, Starts: minutes(5), Places: []wait.Place{booked, leased}}, f)
	foresee := func() *plan.Outlook { return plan.Foresee(w.liveSnapshot(), w.policy, w.now) }
	require.False(t, foresee().Hopeless("w"))
	require.False(t, foresee().Hopeless("r"), "it has its place")
	until := w.Reservations[1].Window.End
	e, waits := foresee().Wait("w", until)
	require.True(t, waits)
	require.False(t, foresee().Expires("w", until))
	_, waits = foresee().Wait("w", w.now.Add(e.P50-1))
	require.False(t, waits, "it has likely given up by then")
	require.True(t, foresee().Expires("w", w.now.Add(e.P50-1)))
	require.False(t, foresee().Expires("w", w.now.Add(e.P50)))
	_, waits = foresee().Wait("r", until)
	require.False(t, waits)
	require.False(t, foresee().Expires("r", w.now), "it has its place")

	w.Reservations[1].Window.End = w.now.Add(minutes(25))
	_, waits = w.waitFacts("w")
	require.False(t, waits, "its window ends when there is room")
	require.True(t, foresee().Hopeless("w"))
	require.True(t, foresee().Expires("w", w.now.Add(minutes(999))), "however long it waits")
	w.Reservations[1].Window.End = w.now.Add(minutes(25) + 1)
	_, waits = w.waitFacts("w")
	require.True(t, waits)
	require.False(t, foresee().Hopeless("w"))
}

// Who comes before in the queue takes its part of the places first, if it waits
// for the same time.
func TestWhoWaitsBehindOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first string
		need  int
		waits bool
	}{
		"one node":                {"09:10-11:00 1x8", 2, true},
		"part of a node":          {"09:10-11:00 1x1", 2, true},
		"all of them":             {"09:10-11:00 2x8", 3, true},
		"more than there will be": {"09:10-11:00 3x8", 4, false},
		"another time":            {"11:00-12:00 2x8", 1, true},
	} {
		w := worldOf(t, "pool nodes=3\n reservation a 09:00-09:30 3x8 0+1+2 person\n clock 08:59\n"+
			"reservation first "+tc.first+" - person\n clock 09:00\n reservation w 09:10-11:00 1x8 - person")
		f, waits := w.waitFacts("w")
		require.Equal(t, tc.waits, waits, name)
		if waits {
			require.Equal(t, tc.need, f.Need, name)
			require.Len(t, f.Places, 3, name)
			require.Equal(t, 1, f.Missing, name)
		}
	}
}

// A pool whose provider has nothing: another ready node, when what is on it ends,
// serves whoever waits for one.
func TestAReadyNodeInstead(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "node n1 1 ready\n allocation a 1x8 1 1h")
	w.holdDevices("a")
	w.obeyCommand([]string{"clock", "09:10"})
	w.Supply = w.Supply.Failed(w.now, w.now, minutes(5))
	w.obeyCommand(strings.Fields("allocation b 1x8 0 2h"))
	w.obeyCommand([]string{"clock", "09:11"})
	w.obeyCommand(strings.Fields("allocation c 1x8 2 2h"))
	instead := []wait.Place{{Room: minutes(49), Holds: []wait.Hold{{Age: minutes(11), Lease: minutes(60)}}}}
	for id, turn := range map[string]int{"b": 1, "c": 2} {
		f, waits := w.waitFacts(id)
		require.True(t, waits)
		require.Equal(t, instead, f.Instead, id)
		require.Equal(t, turn, f.Turn, id)
		require.Equal(t, 1, f.Missing, id)
		require.Equal(t, minutes(4), f.Blocked, id)
		require.Equal(t, 1, f.Stock.Refused, id)
	}
	w.Supply = w.Supply.FailedGate(w.now, w.now, minutes(5), "ecc").FailedGate(w.now, w.now, minutes(5), "ecc")
	_, waits := w.waitFacts("b")
	require.False(t, waits, "nobody knows when a person comes")
}

func TestWhatHasNoPlaceAnyMore(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "reservation r 09:02-10:00 3x8 1+2+3 person\n event r warm\n allocation a 1x8 0 1h")
	w.Pool.MaxNodes = 2
	o := plan.Foresee(w.liveSnapshot(), w.policy, w.now)
	require.Equal(t, []string{"r"}, o.Homeless())
	_, waits := o.Waiting("r")
	require.False(t, waits, "nobody knows when there is a place again")
	var lost []int
	for _, x := range o.Obstacles("r") {
		if x.Code == plan.LacksSlot {
			lost = append(lost, x.Slot)
		}
	}
	require.Equal(t, []int{2, 3}, lost)
}

func TestWhatComesNextForANode(t *testing.T) {
	t.Parallel()
	w := worldOf(t, `node n1 0 ready
		node n2 1 booting
		allocation a 1x4 0 1h
		allocation b 1x8 1 2h 5m
		reservation r 11:00-12:00 1x8 0 person`)
	w.holdDevices("a")
	o := plan.Foresee(w.liveSnapshot(), w.policy, w.now)
	at := func(hm string) time.Time { return clockTime(t, hm) }
	require.Equal(t, []plan.Step{
		{Code: plan.StepInUse, At: at("10:00"), Subject: "a"}, {Code: plan.StepNeeded, At: at("11:00"), Subject: "r"},
	}, o.Next("n1"))
	require.Equal(t, []plan.Step{{Code: plan.StepAwaited, At: at("11:05"), Subject: "b"}}, o.Next("n2"))
	require.Equal(t, []plan.Obstacle{{Code: plan.LacksBoot, Slot: 1, Node: w.nodeOf("n2")}}, o.Obstacles("n2"))
	require.Empty(t, o.Obstacles("n1"))
	require.Empty(t, o.Next("nobody"))
}

// Of idle nodes those go that were idle first, as long as the pool keeps fewer.
func TestWhichIdleNodesGo(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "node n1 1 ready\n clock 09:02\n node n2 0 ready\n clock 09:03")
	goes := map[string]time.Time{"n1": clockTime(t, "09:10"), "n2": clockTime(t, "09:12")}
	for atLeast, gone := range [][]string{{"n1", "n2"}, {"n1"}, {}} {
		w.Pool.MinNodes = atLeast
		o := plan.Foresee(w.liveSnapshot(), w.policy, w.now)
		for _, id := range []string{"n1", "n2"} {
			var want []plan.Step
			if slices.Contains(gone, id) {
				want = []plan.Step{{Code: plan.StepIdle, At: goes[id]}}
			}
			require.ElementsMatch(t, want, o.Next(id), "%s of a pool that keeps %d", id, atLeast)
		}
	}
}

func TestWhatWasGivenBackIsCleaned(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "")
	w.Pool.Timers.Cleaning = minutes(10)
	x := learned.Cleaning{ID: "a", Since: w.now, Slots: []int{0, 1}, GPUs: 8, Short: 3}
	require.Equal(t, calendar.Booking{
		ID: "cleaning of a", Slots: []int{0, 1}, GPUs: 8, Short: 3,
		Interval: calendar.Interval{Start: w.now.Add(-time.Second), End: w.now},
	}, x.Booking())
	w.Cleaning = []learned.Cleaning{x}
	next := plan.Compute(w.liveSnapshot(), w.policy, w.now).Next
	require.Equal(t, w.now.Add(minutes(10)), next, "whoever waits is served then")
	later := learned.Cleaning{ID: "b", Since: w.now.Add(1)}
	dirty, clean := learned.Cleaned([]learned.Cleaning{x, later}, minutes(10), w.now.Add(minutes(10)))
	require.Equal(t, []learned.Cleaning{later}, dirty)
	require.Equal(t, []learned.Cleaning{x}, clean)
}

// A promise that is late waits for its nodes, and one that is not late does not.
func TestALatePromiseWaits(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "block 09:20\n reservation r 09:02-10:00 1x8 0 person")
	_, waits := w.waitFacts("r")
	require.False(t, waits)
	w.Reservations[0].Degraded = true
	f, waits := w.waitFacts("r")
	require.True(t, waits)
	require.Equal(t, 1, f.Missing)
	w.applyToReservation("r", reservation.Expire)
	_, waits = w.waitFacts("r")
	require.False(t, waits)
}

func TestWhoWaitsForATrial(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "pool nodes=2\n node n 1 booting\n clock 09:03\n allocation a 2x8 0+1 1h")
	w.Supply.Failures = 99
	f, waits := w.waitFacts("a")
	require.True(t, waits)
	three := []time.Duration{minutes(3)}
	require.Equal(t, wait.Facts{Missing: 1, Ages: three, Trials: three}, f)
}
