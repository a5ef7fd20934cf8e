package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// world is one pool that commits what the planner decides, through the state
// machines, as the ledger does. The stories and the properties share it.
type world struct {
	t require.TestingT
	plan.Snapshot
	policy plan.Policy
	now    time.Time
	made   int // nodes made so far; the next is n<made+1>
}

// liveSnapshot is the snapshot without what is over.
func (w *world) liveSnapshot() plan.Snapshot {
	s := w.Snapshot
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes),
		func(n node.Node) bool { return node.Machine.Terminal(n.State()) })
	s.Reservations = slices.DeleteFunc(slices.Clone(s.Reservations),
		func(r reservation.Reservation) bool { return !r.Live() })
	s.Allocations = slices.DeleteFunc(slices.Clone(s.Allocations),
		func(a allocation.Allocation) bool { return !a.Live() })
	return s
}

// promisedCalendar is what is promised from now on. Each booking is placed, not forced:
// an over-committed slot fails the test.
func (w *world) promisedCalendar() *calendar.Slots {
	s := calendar.NewSlots(w.Pool.MaxNodes, w.Pool.PerNode)
	place := func(b calendar.Booking) {
		b = withinSlots(b, w.Pool.MaxNodes) // the pool was shrunk below it
		if b.Interval = b.Interval.From(w.now); b.Interval.Valid() && len(b.Slots) > 0 {
			require.NoError(w.t, s.Place(b))
		}
	}
	for _, r := range w.Reservations {
		if r.Placed() {
			place(r.Booking())
		}
	}
	for _, a := range w.Allocations {
		if a.Live() {
			place(a.Booking())
		}
	}
	return s
}

// withinSlots is the part of a booking that is on the first slots.
func withinSlots(b calendar.Booking, slots int) calendar.Booking {
	gone := func(slot int) bool { return slot >= slots }
	lost := len(b.Slots) > 0 && gone(b.Slots[len(b.Slots)-1])
	b.Slots = slices.DeleteFunc(slices.Clone(b.Slots), gone)
	switch {
	case lost:
		b.Short = 0
	case len(b.Slots) == 1:
		b.GPUs, b.Short = b.GPUs-b.Short, 0
	}
	return b
}

// maxRounds is how often the ledger computes again before it goes away.
const maxRounds = 12

// planUntilSettled plans until nothing is left to do now. see is shown every result
// before it is committed.
func (w *world) planUntilSettled(see func(plan.Result)) plan.Result {
	var trail []string
	for range maxRounds {
		result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
		for _, a := range result.Actions {
			does, reason := plan.Judge(a.Kind, a.Facts)
			require.True(w.t, does, "%s %s does not follow from its facts", a.Kind, a.Subject)
			require.Equal(w.t, a.Reason, reason)
		}
		for _, a := range result.Actions {
			trail = append(trail, describeAction(a))
		}
		trail = append(trail, "--")
		see(result)
		changed := false
		for _, a := range result.Actions {
			changed = w.commitAction(a) || changed
		}
		if changed {
			continue
		}
		if w.promoteWaitlisted(result.Actions) {
			return w.planUntilSettled(see)
		}
		return result
	}
	require.Fail(w.t, "the plan does not come to rest", "%s: %s", w, strings.Join(trail, "\n"))
	return plan.Result{}
}

// promoteWaitlisted promotes the waitlisted that have a place now.
func (w *world) promoteWaitlisted(actions []plan.Action) (promoted bool) {
	for _, a := range actions {
		if a.Kind == plan.RetryWaitlisted {
			promoted = w.promoteIfFits(a.Subject) || promoted
		}
	}
	return promoted
}

// commitAction applies an action and reports whether it changed anything.
func (w *world) commitAction(a plan.Action) bool {
	switch a.Kind {
	case plan.BootNode:
		w.made++
		w.Nodes = append(w.Nodes, node.New(fmt.Sprint("n", w.made), w.Pool.ID, a.Slot, w.made, w.now))
		_, window := plan.Creates(w.Pool)
		w.Supply.Created = w.Supply.Created.Add(1, window, w.now)
	case plan.AbandonNode:
		w.applyToNode(a.Subject, node.Abandon)
	case plan.DrainNode:
		w.applyToNode(a.Subject, node.Drain)
		w.Supply.Removed = w.Supply.Removed.Add(1, w.policy.WithDefaults().RemoveWindow, w.now)
	case plan.RetireNode:
		w.applyToNode(a.Subject, node.Retire)
	case plan.RetryWaitlisted:
		return false // afterwards, in a transaction of its own
	case plan.ActivateAllocation:
		return w.activateAllocation(a.Subject)
	case plan.MoveAllocation:
		w.allocationOf(a.Subject).Slots = a.Slots
	case plan.ExpireAllocation:
		w.applyToAllocation(a.Subject, allocation.Expire)
	case plan.WarnIdle:
		w.allocationOf(a.Subject).IdleWarnedAt = w.now
	case plan.ReclaimIdle:
		w.applyToAllocation(a.Subject, allocation.Expire)
	case plan.FailAllocation:
		w.applyToAllocation(a.Subject, allocation.Fail)
	case plan.MoveReservation:
		w.reservationOf(a.Subject).Slots = a.Slots
	case plan.DegradeReservation:
		r := w.reservationOf(a.Subject)
		if r.Degraded = true; a.Reason == plan.ReasonShrunk {
			r.Reason = a.Reason
		}
	case plan.RestoreReservation:
		r := w.reservationOf(a.Subject)
		r.Degraded, r.Reason = false, a.Reason
	default:
		w.applyToReservation(a.Subject, map[plan.Kind]reservation.Event{
			plan.WarmReservation: reservation.Warm, plan.ReadyReservation: reservation.BecomeReady,
			plan.UnreadyReservation: reservation.LoseNode,
			plan.ExpireReservation:  reservation.Expire, plan.FailReservation: reservation.FailWindow,
		}[a.Kind])
		if a.Reason == plan.ReasonPaused {
			w.markIdle(w.reservationOf(a.Subject).Slots)
		}
	}
	return true
}

func (w *world) nodeOf(id string) *node.Node {
	i := slices.IndexFunc(w.Nodes, func(n node.Node) bool { return n.ID == id })
	require.GreaterOrEqual(w.t, i, 0, "node %s", id)
	return &w.Nodes[i]
}

func (w *world) reservationOf(id string) *reservation.Reservation {
	i := slices.IndexFunc(w.Reservations, func(r reservation.Reservation) bool { return r.ID == id })
	require.GreaterOrEqual(w.t, i, 0, "reservation %s", id)
	return &w.Reservations[i]
}

func (w *world) allocationOf(id string) *allocation.Allocation {
	i := slices.IndexFunc(w.Allocations, func(a allocation.Allocation) bool { return a.ID == id })
	require.GreaterOrEqual(w.t, i, 0, "allocation %s", id)
	return &w.Allocations[i]
}

func (w *world) applyToNode(id string, events ...node.Event) {
	n := w.nodeOf(id)
	for _, e := range events {
		next, err := n.Apply(e, "", w.now)
		require.NoError(w.t, err)
		*n = next
	}
}

func (w *world) applyToReservation(id string, e reservation.Event) {
	r := w.reservationOf(id)
	next, err := r.Apply(e, "", w.now)
	require.NoError(w.t, err)
	*r = next
	if !r.Live() {
		w.markIdle(r.Slots)
	}
}

func (w *world) applyToAllocation(id string, events ...allocation.Event) {
	a := w.allocationOf(id)
	for _, e := range events {
		next, err := a.Apply(e, "", w.now)
		require.NoError(w.t, err)
		*a = next
	}
	if !a.Live() {
		w.markIdle(a.Slots)
	}
}

// markIdle starts the idle time of the ready nodes on the slots.
func (w *world) markIdle(slots []int) {
	for i, n := range w.Nodes {
		if n.State() == node.Ready && slices.Contains(slots, n.Slot) {
			w.Nodes[i].IdleSince = w.now
		}
	}
}

// onSlot returns the node that takes the slot, if there is one.
func (w *world) onSlot(slot int) (node.Node, bool) {
	for _, n := range w.Nodes {
		if n.Slot == slot && !node.Machine.Terminal(n.State()) {
			return n, true
		}
	}
	return node.Node{}, false
}

func (w *world) promoteIfFits(id string) bool {
	r := w.reservationOf(id)
	slots, ok := w.promisedCalendar().Find(r.Shape, r.Window.From(w.now), nil)
	if ok {
		r.Slots = slots
		w.applyToReservation(id, reservation.Promote)
	}
	return ok
}

// activateAllocation hands over devices that nobody holds, or reports that it cannot.
func (w *world) activateAllocation(id string) bool {
	a := w.allocationOf(id)
	taken := map[allocation.Held]bool{}
	for _, other := range w.Allocations {
		if other.Holds() {
			for _, h := range other.Devices {
				taken[h] = true
			}
		}
	}
	var devices []allocation.Held
	for i, slot := range a.Slots {
		n, ok := w.onSlot(slot)
		require.True(w.t, ok && n.State() == node.Ready, "%s is activated on slot %d without a ready node", id, slot)
		left := a.Shape.On(i)
		for i := range w.Pool.PerNode {
			if h := (allocation.Held{NodeID: n.ID, UUID: fmt.Sprint("gpu", i)}); left > 0 && !taken[h] {
				devices = append(devices, h)
				left--
			}
		}
		if left > 0 {
			return false
		}
	}
	others := w.promisedCalendar()
	others.Remove(id)
	w.applyToAllocation(id, allocation.Activate)
	a.Devices = devices
	whole := a.Booking()
	whole.Interval = calendar.Interval{Start: w.now, End: a.LeaseUntil}
	if !others.FitsAll(whole) {
		a.LeaseUntil = a.Window.End
	}
	a.Window.End = a.LeaseUntil
	return true
}

// claimReservation makes an allocation out of a reservation, as its owner does.
func (w *world) claimReservation(id string, lease time.Duration) {
	r := *w.reservationOf(id)
	window := calendar.Interval{Start: w.now, End: w.now.Add(lease)}
	c := w.promisedCalendar()
	c.Remove(id)
	whole := r.Booking()
	whole.Interval = window
	if !c.FitsAll(whole) {
		return
	}
	w.applyToReservation(id, reservation.Claim)
	w.Allocations = append(w.Allocations, allocation.New(allocation.Allocation{
		ID: "a-" + id, Shape: r.Shape, Slots: r.Slots, Lease: lease, Window: window,
	}, w.now))
}

// String shows everything that is not over, for people.
func (w *world) String() string {
	var parts []string
	s := w.liveSnapshot()
	for _, r := range s.Reservations {
		late := ""
		if r.Degraded {
			late = " degraded"
		}
		parts = append(parts, fmt.Sprintf("%s %s%s on %s", r.ID, r.State(), late, listSlots(r.Slots)))
	}
	for _, a := range s.Allocations {
		parts = append(parts, fmt.Sprintf("%s %s on %s", a.ID, a.State(), listSlots(a.Slots)))
	}
	for _, n := range s.Nodes {
		parts = append(parts, fmt.Sprintf("%s %s on %d", n.ID, n.State(), n.Slot))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func listSlots(slots []int) string {
	if len(slots) == 0 {
		return "no slot"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(slots), " ", "+"), "[]")
}
