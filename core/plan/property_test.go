package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// history is a random life of one pool: people, agents, a provider that is slow
// or refuses, machines that break. Every plan made on the way is inspected.
type history struct {
	*world
	r       *rapid.T
	due     map[string]time.Time // when the provider is done with a node's next step
	waking  time.Time            // what the last plan asked for
	ordinal int
	said    map[string]claim // what was said to come next and nobody outside changed since
	running map[string]bool  // allocations that something still ran on when they were released
}

var dawn = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

func newHistory(r *rapid.T) *history {
	h := &history{r: r, due: map[string]time.Time{}, said: map[string]claim{}, running: map[string]bool{},
		world: &world{t: r, now: dawn, policy: plan.Policy{Guard: time.Minute}}}
	h.Pool = capacity.Pool{
		ID: "pool", PerNode: rapid.SampledFrom([]int{1, 4, 8}).Draw(r, "per node"),
		MaxNodes: rapid.IntRange(1, 4).Draw(r, "slots"),
		Timers:   capacity.Timers{WarmHold: h.drawMinutes("hold", 0, 20), IdleRelease: h.drawMinutes("idle", 0, 30)},
	}
	h.Pool.MaxCreates = rapid.IntRange(1, 8).Draw(r, "cap")
	h.Pool.CreateWindow = h.drawMinutes("create window", 1, 30)
	h.Pool.MinNodes = rapid.IntRange(0, h.Pool.MaxNodes).Draw(r, "minimum")
	h.Boot.Prior50 = h.drawMinutes("p50", 1, 6)
	h.Boot.Prior95 = h.Boot.Prior50 + h.drawMinutes("p95", 0, 6)
	return h
}

func (h *history) drawMinutes(label string, from, to int) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(h.r, label)) * time.Minute
}

func (h *history) nextID(kind string) string {
	h.ordinal++
	return fmt.Sprintf("%s%03d", kind, h.ordinal)
}

func (h *history) drawShape() capacity.Shape {
	gpus := rapid.IntRange(1, h.Pool.PerNode*h.Pool.MaxNodes).Draw(h.r, "gpus")
	shape, _ := capacity.Layout{}.Shape(gpus, h.Pool.PerNode)
	return shape
}

// actOutside is one thing that anybody outside may do.
func (h *history) actOutside() {
	clear(h.said)
	what := []string{"reserve", "reserve", "allocate", "allocate", "claim", "claim", "cancel", "release", "break",
		"block", "pause", "resize", "nothing"}
	switch rapid.SampledFrom(what).Draw(h.r, "what") {
	case "reserve":
		h.addReservation()
	case "allocate":
		h.addAllocation()
	case "claim":
		h.pickOne("claimed", h.reservationsIn(reservation.Ready, reservation.Warming),
			func(id string) { h.claimReservation(id, h.drawMinutes("lease", 1, 90)) })
	case "cancel":
		h.pickOne("cancelled", h.reservationsIn(reservation.Booked, reservation.Warming, reservation.Ready,
			reservation.Waitlisted), func(id string) {
			h.applyToReservation(id, reservation.Cancel)
		})
	case "release":
		h.releaseOne()
	case "break":
		h.breakNode()
	case "block":
		h.Supply.BlockedUntil = h.now.Add(h.drawMinutes("blocked", 1, 30))
	case "pause":
		h.Paused = map[string]time.Time{rapid.SampledFrom([]string{"", "o1"}).Draw(h.r,
			"who"): h.now.Add(h.drawMinutes("paused", 0, 60))}
	case "resize":
		h.Pool.MaxNodes = rapid.IntRange(1, 5).Draw(h.r, "slots")
		h.Pool.MinNodes = min(h.Pool.MinNodes, h.Pool.MaxNodes)
	}
}

// pickOne picks one of the ids, if there is one.
func (h *history) pickOne(label string, ids []string, do func(id string)) {
	if len(ids) > 0 {
		do(rapid.SampledFrom(ids).Draw(h.r, label))
	}
}

func (h *history) reservationsIn(states ...reservation.State) []string {
	var ids []string
	for _, r := range h.Reservations {
		if slices.Contains(states, r.State()) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (h *history) addReservation() {
	start := h.now.Add(h.drawMinutes("ahead", 0, 120))
	r := reservation.Reservation{
		ID: h.nextID("r"), Shape: h.drawShape(), Window: calendar.Interval{Start: start,
			End: start.Add(h.drawMinutes("window", 1, 120))},
		Origin: rapid.SampledFrom([]reservation.Origin{reservation.FromPerson, reservation.FromAgent}).Draw(h.r,
			"source"),
		Class: rapid.SampledFrom([]reservation.Class{reservation.Guaranteed,
			reservation.Speculative}).Draw(h.r, "class"),
		OrganizationID: rapid.SampledFrom([]string{"o1", "o2"}).Draw(h.r, "organization"),
	}
	state := reservation.Waitlisted
	if slots, ok := h.promisedCalendar().Find(r.Shape, r.Window, nil); ok {
		r.Slots, state = slots, reservation.Booked
	}
	r, err := reservation.New(r, state, h.now)
	require.NoError(h.r, err)
	h.Reservations = append(h.Reservations, r)
}

func (h *history) addAllocation() {
	a := allocation.Allocation{ID: h.nextID("a"), Shape: h.drawShape(), Lease: h.drawMinutes("lease", 1, 90)}
	a.Window = calendar.Interval{Start: h.now, End: h.now.Add(a.Lease + plan.Lead(h.Boot, h.policy))}
	if slots, ok := h.promisedCalendar().Find(a.Shape, a.Window, nil); ok {
		a.Slots = slots
		h.Allocations = append(h.Allocations, allocation.New(a, h.now))
	}
}

// releaseOne has a holder give up, at once or while something still runs, or what runs
// come to its end.
func (h *history) releaseOne() {
	var pending, active, releasing []string
	for _, a := range h.Allocations {
		switch a.State() {
		case allocation.Pending:
			pending = append(pending, a.ID)
		case allocation.Active:
			active = append(active, a.ID)
		case allocation.Releasing:
			releasing = append(releasing, a.ID)
		}
	}
	h.pickOne("gave up", pending, func(id string) { h.applyToAllocation(id, allocation.Cancel) })
	h.pickOne("finished", releasing, func(id string) { h.applyToAllocation(id, allocation.Finish) })
	h.pickOne("released", active, func(id string) {
		h.applyToAllocation(id, allocation.Release)
		if rapid.Bool().Draw(h.r, "nothing runs") {
			h.applyToAllocation(id, allocation.Finish)
		} else {
			h.running[id] = true
		}
	})
}

// planAndInspect plans as the ledger does, and inspects each result before it is committed.
func (h *history) planAndInspect() {
	soon := h.announcedSlots()
	result := h.planUntilSettled(h.inspectResult)
	h.waking = result.Next
	h.checkDistantPromise(result)
	h.checkRequested(soon)
	h.verifyClaims()
	h.checkObstacles()
	h.collectClaims()
	h.promisedCalendar() // places every promise again
}

func (h *history) inspectResult(result plan.Result) {
	require.True(h.r, result.Next.IsZero() || result.Next.After(h.now), "the next look is strictly later")
	if len(result.Actions) == 0 {
		return
	}
	input := h.liveSnapshot()
	before := fmt.Sprintf("%#v", input)
	require.Equal(h.r, result, plan.Compute(input, h.policy, h.now), "the same again")
	require.Equal(h.r, before, fmt.Sprintf("%#v", input), "and the input is untouched")
	h.checkBorrowedCalendar(result)
	booted := map[int]bool{}
	for _, a := range result.Actions {
		h.checkPromiseKept(a)
		if a.Kind != plan.BootNode { // whoever comes before in the queue for nodes may change with it
			h.forgetClaims(plan.HeldCapped)
		}
		switch a.Kind {
		case plan.BootNode:
			_, taken := h.onSlot(a.Slot)
			require.False(h.r, taken || booted[a.Slot], "slot %d has a node", a.Slot)
			require.Less(h.r, a.Slot, h.Pool.MaxNodes)
			require.False(h.r, h.Supply.BlockedUntil.After(h.now), "the provider refuses")
			booted[a.Slot] = true
		case plan.DrainNode:
			if n := h.nodeOf(a.Subject); n.Slot < h.Pool.MaxNodes { // what runs beyond the pool runs on while its node drains
				h.checkNodeSpared(*n)
			}
		case plan.AbandonNode, plan.RetireNode:
			h.checkNodeSpared(*h.nodeOf(a.Subject))
		}
	}
}

// checkBorrowedCalendar plans once more with a calendar of the caller's, which comes back as it
// was.
func (h *history) checkBorrowedCalendar(result plan.Result) {
	input := h.liveSnapshot()
	input.Slots = input.BuildCalendar()
	before := input.Slots.String()
	require.Equal(h.r, result, plan.Compute(input, h.policy, h.now), "the same with a calendar at hand")
	require.Equal(h.r, before, input.Slots.String())
}

// checkPromiseKept fails when a promise is ended before its time, or touched by a pause.
func (h *history) checkPromiseKept(a plan.Action) {
	switch a.Kind {
	case plan.ExpireReservation, plan.FailReservation, plan.UnreadyReservation, plan.DegradeReservation:
	default:
		return
	}
	x := h.reservationOf(a.Subject)
	require.False(h.r, x.Class == reservation.Guaranteed && a.Reason == plan.ReasonPaused, "a pause touches %s", x.ID)
	over := !x.Window.End.After(h.now)
	switch a.Kind {
	case plan.FailReservation:
		require.True(h.r, over, "%s is dropped", x.ID)
	case plan.ExpireReservation:
		require.True(h.r, over || a.Reason == plan.ReasonNoShow, "%s is dropped", x.ID)
	}
}

// checkNodeSpared fails when the node of somebody is taken away while it still serves.
func (h *history) checkNodeSpared(n node.Node) {
	if n.State() == node.Lost || n.State() == node.Quarantined {
		return
	}
	for _, a := range h.Allocations {
		require.False(h.r, a.Holds() && slices.Contains(a.Slots, n.Slot), "%s works on %s: %s",
			a.ID, n.ID, h)
	}
	for _, r := range h.Reservations {
		held := r.State() == reservation.Ready && slices.Contains(r.Slots, n.Slot)
		require.False(h.r, held && n.State() == node.Ready, "%s holds %s: %s", r.ID, n.ID, h)
	}
}

// passTime lets time go on to the next thing that is due, at most by step.
func (h *history) passTime(step time.Duration) {
	next := h.advanceProvider()
	h.planAndInspect()
	next = earlier(next, h.advanceProvider())
	next = earlier(next, h.waking)
	h.now = earlier(next, h.now.Add(step))
}

// earlier is the first of two times, of which the zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func TestAnyHistoryEndsWell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(r)
		for range rapid.IntRange(1, 40).Draw(r, "happenings") {
			h.actOutside()
			h.passTime(h.drawMinutes("step", 0, 20))
		}
		h.Pool.MinNodes = 0
		h.finishReleased()
		h.runToEnd()
	})
}

// finishReleased ends what still runs on released allocations.
func (h *history) finishReleased() {
	for _, a := range slices.Clone(h.Allocations) {
		if a.State() == allocation.Releasing {
			h.applyToAllocation(a.ID, allocation.Finish)
		}
	}
}

// runToEnd goes from one due moment to the next, with nobody outside doing
// anything, until all is over: nothing may be forgotten on the way.
func (h *history) runToEnd() {
	for range 2000 {
		next := h.advanceProvider()
		h.planAndInspect()
		next = earlier(earlier(next, h.advanceProvider()), h.waking)
		if next.IsZero() {
			break
		}
		h.now = next
	}
	require.Equal(h.r, "nothing", h.String(), "what is left waits for nothing")
	for _, a := range h.Allocations {
		require.False(h.r, a.EndedAt.IsZero())
		if wait, ok := a.Wait(); ok {
			require.GreaterOrEqual(h.r, wait, time.Duration(0))
			require.False(h.r, !h.running[a.ID] && a.State() != allocation.Released && a.EndedAt.After(a.LeaseUntil),
				"nobody holds GPUs beyond the lease, but for what runs to its end")
		}
	}
	for _, x := range h.Reservations {
		require.False(h.r, x.EndedAt.After(later(x.Window.End, x.CreatedAt)), "nothing is held beyond its window")
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A pool that nothing disturbs keeps its promises.
func TestAnUndisturbedPromiseIsReadyAtItsStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(r)
		h.Pool.MaxCreates = 1000 // the cap would disturb it
		h.Pool.MinNodes = 0
		for range rapid.IntRange(1, 6).Draw(r, "reservations") {
			h.addReservation()
		}
		promised := h.reservationsIn(reservation.Booked) // what waits for a place may get it too late
		lead := plan.Lead(h.Boot, h.policy)
		for range 500 {
			for range 3 {
				h.planUntilSettled(func(plan.Result) {})
				h.obligingProvider()
			}
			h.planAndInspect()
			for _, x := range h.Reservations {
				due := !x.Window.Start.After(h.now) && x.Window.End.After(h.now)
				if slices.Contains(promised, x.ID) && x.Placed() && due && x.Window.Start.Sub(x.CreatedAt) >= lead {
					require.Equal(r, reservation.Ready, x.State(), "%s at its start: %s", x.ID, h)
					require.False(r, x.Degraded)
				}
			}
			if h.now = h.now.Add(time.Minute); len(h.liveSnapshot().Reservations) == 0 {
				break
			}
		}
		require.Empty(r, h.liveSnapshot().Reservations)
	})
}
