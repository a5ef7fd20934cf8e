package plan

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Codes of the reasons that are stored with an action.
const (
	ReasonLease       = "lease_ended"
	ReasonNodeLost    = "node_lost"
	ReasonNoShow      = "no_show"
	ReasonWindowEnded = "window_ended"
	ReasonNeverReady  = "never_ready"
	ReasonLead        = "lead_time_reached"
	ReasonNodesReady  = "nodes_ready"
	ReasonLate        = "late"
	ReasonHandOver    = "hand_over"
	ReasonDemand      = "on_demand"
	ReasonPrewarm     = "pre_warm"
	ReasonMinimum     = "pool_minimum"
	ReasonIdle        = "idle"
	ReasonUnused      = "unused"
	ReasonEmpty       = "empty"
	ReasonBootTimeout = "boot_timeout"
	ReasonUnhealthy   = "unhealthy"
)

func (c *computation) allocations() {
	for _, a := range c.Allocations {
		switch a.State() {
		case allocation.Active:
			c.active(a)
		case allocation.Pending:
			c.pending(a)
		}
	}
}

func (c *computation) active(a allocation.Allocation) {
	for _, slot := range a.Slots {
		c.wanted[slot], c.held[slot] = true, true
	}
	switch {
	case c.broken(a):
		c.do(Action{Kind: FailAllocation, Subject: a.ID, Reason: ReasonNodeLost})
		c.slots.Remove(a.ID)
	case c.reached(a.LeaseUntil):
		c.do(Action{Kind: ExpireAllocation, Subject: a.ID, Reason: ReasonLease})
	}
}

// broken reports whether a node under the allocation can no longer be used. A
// draining node still serves what is on it.
func (c *computation) broken(a allocation.Allocation) bool {
	for _, slot := range a.Slots {
		n, ok := c.bySlot[slot]
		if !ok || (n.State() != node.Ready && n.State() != node.Draining) {
			return true
		}
	}
	return false
}

func (c *computation) pending(a allocation.Allocation) {
	if c.reached(a.Window.End) {
		c.keep(a.Slots)
		c.do(Action{Kind: ExpireAllocation, Subject: a.ID, Reason: ReasonNeverReady})
		return
	}
	if c.standing(a.Slots) == ready && c.room(a) {
		c.keep(a.Slots)
		c.do(Action{Kind: ActivateAlloc, Subject: a.ID, Reason: ReasonNodesReady})
		c.lease(a)
		return
	}
	b := a.Booking()
	if slots, ok := c.better(b, a.Shape); ok {
		c.do(Action{Kind: MoveAllocation, Subject: a.ID, Slots: slots, Reason: ReasonHandOver})
		c.want(slots, ReasonDemand)
		return
	}
	c.want(a.Slots, ReasonDemand)
}

// lease gives an allocation the whole lease that counts from now, where the
// calendar allows it, as its activation will: what is moved after it in this
// result must not take that time.
func (c *computation) lease(a allocation.Allocation) {
	b, until := a.Booking(), c.now.Add(a.Lease)
	c.slots.Remove(b.ID)
	whole := calendar.Interval{Start: c.now, End: until}
	if until.After(b.Interval.End) && !slices.ContainsFunc(b.Slots, func(slot int) bool { return !c.slots.Fits(slot, b.GPUs, whole) }) {
		b.Interval.End = until
	}
	c.slots.Force(b)
}

// room reports whether the devices an allocation needs are free: the lease
// before it may have run over.
func (c *computation) room(a allocation.Allocation) bool {
	for _, slot := range a.Slots {
		held := 0
		for _, other := range c.Allocations {
			if other.State() != allocation.Active {
				continue
			}
			for _, h := range other.Devices {
				if h.NodeID == c.bySlot[slot].ID {
					held++
				}
			}
		}
		if held+a.Shape.PerNode > c.Pool.PerNode {
			return false
		}
	}
	return true
}

func (c *computation) reservations() {
	for _, r := range c.Reservations {
		switch r.State() {
		case reservation.AwaitingApproval, reservation.Waitlisted:
			c.waiting(r)
		case reservation.Booked:
			c.booked(r)
		case reservation.Warming:
			c.warming(r)
		case reservation.Ready:
			c.ready(r)
		}
	}
}

func (c *computation) waiting(r reservation.Reservation) {
	if c.reached(r.Window.End) {
		c.do(Action{Kind: ExpireReserv, Subject: r.ID, Reason: ReasonWindowEnded})
		return
	}
	if r.State() == reservation.Waitlisted {
		c.do(Action{Kind: RetryWaitlisted, Subject: r.ID})
	}
}

func (c *computation) booked(r reservation.Reservation) {
	switch {
	case c.reached(r.Window.End):
		c.keep(r.Slots)
		c.do(Action{Kind: FailReservation, Subject: r.ID, Reason: ReasonNeverReady})
	case c.reached(r.Window.Start.Add(-c.lead)):
		c.do(Action{Kind: WarmReservation, Subject: r.ID, Reason: ReasonLead})
		c.provide(r)
	}
}

func (c *computation) warming(r reservation.Reservation) {
	if c.reached(r.Window.End) {
		c.keep(r.Slots)
		c.do(Action{Kind: FailReservation, Subject: r.ID, Reason: ReasonNeverReady})
		return
	}
	if c.standing(r.Slots) == ready {
		c.keep(r.Slots)
		c.do(Action{Kind: ReadyReservation, Subject: r.ID, Reason: ReasonNodesReady})
		return
	}
	c.provide(r)
}

// provide moves a reservation to slots that serve it sooner, asks for the nodes
// it lacks, and flags it when it will be late.
func (c *computation) provide(r reservation.Reservation) {
	b := r.Booking()
	slots := r.Slots
	if better, ok := c.better(b, r.Shape); ok {
		c.do(Action{Kind: MoveReservation, Subject: r.ID, Slots: better, Reason: ReasonHandOver})
		slots = better
	}
	c.want(slots, ReasonPrewarm)
	if r.Degraded || c.born(r) || c.standing(slots) == ready {
		return
	}
	if !c.eta(slots).Before(r.Window.Start) {
		c.do(Action{Kind: DegradeReserv, Subject: r.ID, Reason: ReasonLate})
		return
	}
	// A boot that has not begun by the first of these, or not ended by the
	// second, is late.
	c.at(r.Window.Start.Add(-c.Boot.P50()))
	c.at(r.Window.Start)
}

// born reports whether the reservation was made after its lead time had begun:
// whoever asks for GPUs sooner than a node can boot was never promised more.
func (c *computation) born(r reservation.Reservation) bool {
	return r.CreatedAt.After(r.Window.Start.Add(-c.Boot.P95()))
}

// eta is when the nodes of the slots are likely to be ready, at the median.
func (c *computation) eta(slots []int) time.Time {
	latest := c.now
	for _, slot := range slots {
		n, ok := c.bySlot[slot]
		due := c.now
		switch {
		case ok && n.Coming():
			due = n.RequestedAt.Add(c.Boot.P50())
		case !ok || n.State() != node.Ready:
			due = c.now.Add(c.Boot.P50())
			if c.BlockedUntil.After(c.now) {
				due = c.BlockedUntil.Add(c.Boot.P50())
			}
		}
		if due.After(latest) {
			latest = due
		}
	}
	return latest
}

func (c *computation) ready(r reservation.Reservation) {
	if c.reached(r.Window.End) {
		c.keep(r.Slots)
		c.do(Action{Kind: ExpireReserv, Subject: r.ID, Reason: ReasonNoShow})
		return
	}
	if c.standing(r.Slots) != ready {
		c.do(Action{Kind: UnreadyReserv, Subject: r.ID, Reason: ReasonNodeLost})
		c.provide(r)
		return
	}
	// An agent asks for head room during its window; a person asks for GPUs at
	// its start, and is a no-show some time after.
	if r.Source != reservation.FromAgent && c.reached(later(r.Window.Start, r.ReadyAt).Add(c.Pool.Timers.WarmHold)) {
		c.keep(r.Slots)
		c.do(Action{Kind: ExpireReserv, Subject: r.ID, Reason: ReasonNoShow})
		return
	}
	c.keep(r.Slots)
}

// keep marks slots whose nodes stay for now. What ends in this round keeps its
// nodes too: they are idle from the moment that the end is committed, not from
// when they were last idle before.
func (c *computation) keep(slots []int) {
	for _, slot := range slots {
		c.wanted[slot] = true
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
