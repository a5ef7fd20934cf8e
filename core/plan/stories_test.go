package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

var update = flag.Bool("update", false, "rewrite the recorded answers in testdata")

// TestStories plays the files of testdata. A line is a command; what the planner
// answers to "at" is recorded below it:
//
//	# a remark
//	pool nodes=4 gpus=8 min=0 hold=15m idle=10m   boot=2m p95=4m
//	node n1 0 ready                               on slot 0, ready from now on
//	reservation r1 09:30-11:00 2x8 0+1 person     booked on slots 0 and 1, made now; a last word gives its class
//	allocation a1 1x8 0 1h 5m                     asked for now, pending; 5 minutes more to boot in
//	work w1 1x8 0                                 in a pool that is observed, the cluster's work on slot 0 from now on
//	clock 09:19                                   time passes, nobody plans
//	event n1 lose                                 something happens outside
//	block 09:20                                   the provider refuses until then
//	pause 09:20                                   speculative reservations are not warmed until then
//	at 09:25                                      plan until nothing is left to do
//	----
//	the actions in their order, what is left, when to look again
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			told := tellStory(t, string(text))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(told), 0o644))
				return
			}
			require.Equal(t, string(text), told)
		})
	}
}

// tellStory plays a story and returns it with the answers that were given.
func tellStory(t *testing.T, text string) string {
	w := &world{t: t, now: clockTime(t, "00:00")}
	var out strings.Builder
	answer := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if answer = answer && line != ""; answer {
			continue // an old answer; a blank line ends it
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "at" {
			w.now = clockTime(t, words[1])
			out.WriteString("----\n" + w.answerPlan())
			answer = true
			continue
		}
		w.obeyCommand(words)
	}
	return out.String()
}

func clockTime(t require.TestingT, s string) time.Time {
	c, err := time.Parse("15:04", s)
	require.NoError(t, err)
	return time.Date(2026, 3, 2, c.Hour(), c.Minute(), 0, 0, time.UTC)
}

func (w *world) answerPlan() string {
	var b strings.Builder
	result := w.planUntilSettled(func(r plan.Result) {
		for _, a := range r.Actions {
			b.WriteString(describeAction(a) + "\n")
		}
	})
	fmt.Fprintf(&b, "now: %s\n", w)
	if result.Next.IsZero() {
		return b.String() + "next: never\n"
	}
	return b.String() + "next: " + result.Next.Format("15:04:05") + "\n"
}

func describeAction(a plan.Action) string {
	about, to := a.Subject, ""
	if a.Kind == plan.BootNode {
		about = fmt.Sprint("slot ", a.Slot)
	}
	if len(a.Slots) > 0 {
		to = " to " + listSlots(a.Slots)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s%s: %s", a.Kind, about, to, a.Reason), ": ")
}

func (w *world) obeyCommand(words []string) {
	commands := map[string]func([]string){
		"pool": w.setPool, "node": w.addNode, "reservation": w.addReservation, "allocation": w.addAllocation,
		"work":  w.addWork,
		"event": w.obeyEvent, "clock": func(s []string) { w.now = clockTime(w.t, s[0]) },
		"block": func(s []string) { w.Supply.BlockedUntil = clockTime(w.t, s[0]) },
		"pause": func(s []string) { w.Paused = map[string]time.Time{"": clockTime(w.t, s[0])} },
	}
	command, ok := commands[words[0]]
	require.True(w.t, ok, "unknown command %s", words[0])
	command(words[1:])
}

func (w *world) setPool(options []string) {
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		n, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch key {
		case "nodes":
			w.Pool.MaxNodes = n
		case "gpus":
			w.Pool.PerNode = n
		case "min":
			w.Pool.MinNodes = n
		case "hold":
			w.Pool.Timers.WarmHold = d
		case "idle":
			w.Pool.Timers.IdleRelease = d
		case "boot":
			w.Boot.Prior50 = d
		case "p95":
			w.Boot.Prior95 = d
		case "observed":
			w.Pool.Observed = true
		default:
			require.Fail(w.t, "unknown option "+option)
		}
	}
}

// ways are the events that bring a new node to a state.
var ways = map[string][]node.Event{
	"requested": nil, "provisioning": {node.Provision}, "booting": {node.Provision, node.Boot},
	"ready":    {node.Provision, node.Boot, node.BecomeReady},
	"draining": {node.Provision, node.Boot, node.BecomeReady, node.Drain},
}

func (w *world) addNode(s []string) {
	slot, err := strconv.Atoi(s[1])
	require.NoError(w.t, err)
	events, ok := ways[s[2]]
	require.True(w.t, ok, "no way to state %s", s[2])
	w.made++
	w.Nodes = append(w.Nodes, node.New(s[0], w.Pool.ID, slot, w.made, w.now))
	w.applyToNode(s[0], events...)
}

func (w *world) addReservation(s []string) {
	from, to, _ := strings.Cut(s[1], "-")
	r, state := reservation.Reservation{
		ID: s[0], Window: calendar.Interval{Start: clockTime(w.t, from), End: clockTime(w.t, to)},
		Shape: shapeOf(s[2]), Slots: w.slotsOf(s[3]), Origin: reservation.Origin(s[4]), Class: reservation.Guaranteed,
	}, reservation.Booked
	if len(s) > 5 {
		r.Class = reservation.Class(s[5])
	}
	if len(r.Slots) == 0 {
		state = reservation.Waitlisted
	}
	r, err := reservation.New(r, state, w.now)
	require.NoError(w.t, err)
	w.Reservations = append(w.Reservations, r)
}

func (w *world) addAllocation(s []string) {
	lease, err := time.ParseDuration(s[3])
	require.NoError(w.t, err)
	window := calendar.Interval{Start: w.now, End: w.now.Add(lease)}
	if len(s) > 4 { // the boot is added to the time that it may take
		d, err := time.ParseDuration(s[4])
		require.NoError(w.t, err)
		window.End = window.End.Add(d)
	}
	w.Allocations = append(w.Allocations, allocation.New(allocation.Allocation{
		ID: s[0], Shape: shapeOf(s[1]), Slots: w.slotsOf(s[2]), Lease: lease, Window: window,
	}, w.now))
}

func (w *world) addWork(s []string) {
	a := allocation.New(allocation.Allocation{ID: s[0], Shape: shapeOf(s[1]), Slots: w.slotsOf(s[2]),
		Window: calendar.Interval{Start: w.now, End: w.now}, Work: allocation.Work{ID: s[0]}}, w.now)
	w.Allocations = append(w.Allocations, a)
	w.applyToAllocation(s[0], allocation.Activate)
}

func shapeOf(s string) capacity.Shape {
	nodes, perNode, _ := strings.Cut(s, "x")
	n, _ := strconv.Atoi(nodes)
	g, _ := strconv.Atoi(perNode)
	return capacity.Shape{Nodes: n, PerNode: g}
}

// slotsOf reads 0+2; a dash is none.
func (w *world) slotsOf(s string) []int {
	var slots []int
	for part := range strings.SplitSeq(strings.Trim(s, "-"), "+") {
		if n, err := strconv.Atoi(part); err == nil {
			slots = append(slots, n)
		}
	}
	return slots
}

// obeyEvent is what the outside does: to a node, or an owner to what is theirs.
func (w *world) obeyEvent(s []string) {
	id := s[0]
	switch {
	case s[1] == "claim":
		lease, err := time.ParseDuration(s[2])
		require.NoError(w.t, err)
		w.claimReservation(id, lease)
	case slices.ContainsFunc(w.Nodes, func(n node.Node) bool { return n.ID == id }):
		for _, e := range s[1:] {
			w.applyToNode(id, node.Event(e))
		}
	case slices.ContainsFunc(w.Allocations, func(a allocation.Allocation) bool { return a.ID == id }):
		for _, e := range s[1:] {
			w.applyToAllocation(id, allocation.Event(e))
		}
	default:
		w.applyToReservation(id, reservation.Event(s[1]))
	}
}
