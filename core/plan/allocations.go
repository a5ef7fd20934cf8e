package plan

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
)

func (c *computation) allocations() {
	for _, a := range c.byAge {
		switch a.State() {
		case allocation.Active:
			c.active(a)
		case allocation.Pending:
			c.pending(a)
		}
	}
}

func (c *computation) active(a *allocation.Allocation) {
	for _, slot := range a.Slots {
		c.wanted[slot], c.held[slot] = true, true
	}
	if c.judge(Action{Kind: FailAllocation, Subject: a.ID, Facts: Facts{State: string(a.State()), Standing: c.service(a.Slots).String()}}) {
		c.places.drop(a.Booking())
		return
	}
	if c.reached(a.LeaseUntil) {
		c.judge(Action{Kind: ExpireAllocation, Subject: a.ID, Facts: Facts{State: string(a.State()), Due: a.LeaseUntil, For: ReasonLease}})
	}
}

// service is how far the nodes of an allocation are. A node that is draining, or
// that an operator keeps, still serves what is on it.
func (c *computation) service(slots []int) standing {
	worst := ready
	for _, slot := range slots {
		if n := c.bySlot[slot]; n == nil || n.State() != node.Draining && !n.Kept() {
			worst = min(worst, c.slotStanding(slot))
		}
	}
	return worst
}

func (c *computation) pending(a *allocation.Allocation) {
	f := Facts{State: string(a.State()), Start: a.Window.Start, End: a.Window.End}
	if c.reached(a.Window.End) {
		c.keep(a.Slots)
		f.Due, f.For = a.Window.End, ReasonNeverReady
		c.judge(Action{Kind: ExpireAllocation, Subject: a.ID, Facts: f})
		return
	}
	f.Standing, f.NeedGPUs, f.FreeGPUs = c.standing(a.Slots).String(), a.Shape.PerNode, c.free(a.Slots)
	if c.judge(Action{Kind: ActivateAlloc, Subject: a.ID, Facts: f}) {
		c.keep(a.Slots)
		c.lease(a)
		return
	}
	b := a.Booking()
	b.Slots = c.relocate(MoveAllocation, b, a.Shape)
	c.want(c.hasten(MoveAllocation, b, a.Shape), ReasonDemand)
}

// free is how many GPUs nobody holds on the fullest node of the slots: the lease
// before it may have run over.
func (c *computation) free(slots []int) int {
	left := c.Pool.PerNode
	for _, slot := range slots {
		if n := c.bySlot[slot]; n != nil {
			left = min(left, c.Pool.PerNode-c.inUse[n.ID])
		}
	}
	return left
}

// lease gives an allocation the whole lease that counts from now, where the
// calendar allows it, as its activation will: what is moved after it in this
// result must not take that time.
func (c *computation) lease(a *allocation.Allocation) {
	b, until := a.Booking(), c.now.Add(a.Lease)
	if !until.After(b.Interval.End) {
		return
	}
	c.places.Remove(b.ID)
	whole := calendar.Interval{Start: c.now, End: until}
	fits := !slices.ContainsFunc(b.Slots, func(slot int) bool { return !c.places.Fits(slot, b.GPUs, whole) })
	c.places.Force(b)
	if fits {
		longer := b
		longer.Interval.End = until
		c.places.replace(b, longer)
	}
}
