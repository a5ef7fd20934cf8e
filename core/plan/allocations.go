package plan

import (
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
)

func planAllocations(c *computation) {
	for _, a := range c.byAge {
		if a.Observed() {
			c.keepNodes(a.Slots) // it ends when its scheduler says so
			continue
		}
		switch a.State() {
		case allocation.Active, allocation.Releasing:
			planHolding(c, a)
		case allocation.Pending:
			planPending(c, a)
		}
	}
}

// planHolding keeps the nodes of an allocation for as long as it holds GPUs. One that
// is releasing keeps them, past its lease too, until nothing of its holder runs there.
func planHolding(c *computation, a *allocation.Allocation) {
	for _, slot := range a.Slots {
		c.wanted[slot] = true
	}
	if c.judge(Action{Kind: FailAllocation, Subject: a.ID,
		Facts: Facts{State: string(a.State()), Readiness: readinessInUse(c, a.Slots).String()}}) {
		c.places.dropBooking(a.Booking())
		return
	}
	switch {
	case a.State() != allocation.Active:
	case c.hasCome(a.LeaseUntil):
		c.judge(Action{Kind: ExpireAllocation, Subject: a.ID,
			Facts: Facts{State: string(a.State()), Due: a.LeaseUntil, For: ReasonLease}})
	default:
		planIdle(c, a)
	}
}

// readinessInUse is how far the nodes of an allocation are. A node that is draining, or
// that an operator keeps, still serves what is on it.
func readinessInUse(c *computation, slots []int) readiness {
	worst := ready
	for _, slot := range slots {
		if n := c.bySlot[slot]; n == nil || n.State() != node.Draining && !n.Kept() {
			worst = min(worst, c.nodeReadiness(slot))
		}
	}
	return worst
}

func planPending(c *computation, a *allocation.Allocation) {
	f := Facts{State: string(a.State()), Start: a.Window.Start, End: a.Window.End}
	if c.hasCome(a.Window.End) {
		c.keepNodes(a.Slots)
		f.Due, f.For = a.Window.End, ReasonNeverReady
		c.judge(Action{Kind: ExpireAllocation, Subject: a.ID, Facts: f})
		return
	}
	f.Readiness = c.readiness(a.Slots).String()
	f.NeedGPUs, f.FreeGPUs = tightestNode(c, a)
	if c.judge(Action{Kind: ActivateAllocation, Subject: a.ID, Facts: f}) {
		c.keepNodes(a.Slots)
		reserveLease(c, a)
		return
	}
	b := a.Booking()
	if c.Pinned[a.ID] {
		c.requireNodes(b.Slots, ReasonDemand)
		return
	}
	b.Slots = c.moveToBetter(MoveAllocation, b, a.Shape)
	c.requireNodes(c.takeEarlierBoot(MoveAllocation, b, a.Shape), ReasonDemand)
}

// tightestNode is how many GPUs the allocation needs, and how many nobody holds, on
// that of its nodes where the fewest would be left: the lease before it may have
// run over.
func tightestNode(c *computation, a *allocation.Allocation) (need, free int) {
	need, free = a.Shape.Least(), c.Pool.PerNode
	for i, slot := range a.Slots {
		has, takes := c.Pool.PerNode, a.Shape.On(i)
		if n := c.bySlot[slot]; n != nil {
			has -= c.inUse[n.ID]
		}
		if i == 0 || has-takes < free-need {
			need, free = takes, has
		}
	}
	return need, free
}

// reserveLease gives an allocation the whole lease that counts from now, where the
// calendar allows it, as its activation will: what is moved after it in this
// result must not take that time.
func reserveLease(c *computation, a *allocation.Allocation) {
	b, until := a.Booking(), c.now.Add(a.Lease)
	if !until.After(b.Interval.End) {
		return
	}
	c.places.Remove(b.ID)
	longer := b
	longer.Interval = calendar.Interval{Start: c.now, End: until}
	fits := c.places.FitsAll(longer)
	c.places.Force(b)
	if fits {
		longer.Interval.Start = b.Interval.Start
		c.places.replaceBooking(b, longer)
	}
}
