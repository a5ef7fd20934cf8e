package plan

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/wait"
)

// places is the pool's calendar while a plan is made. Where it belongs to the
// caller, what a plan changes in it is put back.
type places struct {
	*calendar.Slots
	borrowed  bool
	originals []calendar.Booking // what was changed, as it was first
	noted     map[string]bool
	tiers     calendar.Tiers // by preference: its own slots and others, ready, coming, missing and stuck ones
	found     []int
	mine      calendar.SlotSet
	early     calendar.SlotSet
}

func newPlaces(s Snapshot) *places {
	if s.Slots != nil {
		return &places{Slots: s.Slots, borrowed: true, noted: map[string]bool{}}
	}
	return &places{Slots: s.BuildCalendar()}
}

// BuildCalendar returns the calendar of all that takes GPUs of the pool.
func (s Snapshot) BuildCalendar() *calendar.Slots {
	return calendar.Build(s.Pool, calendar.Occupants(s.Reservations), calendar.Occupants(s.Allocations),
		calendar.Occupants(s.Cleaning), calendar.Occupants(s.Rooms), calendar.Occupants(s.Nodes))
}

// Kept is what keeps the slot of a node from all bookings that an operator keeps.
func Kept(n *node.Node, perNode int) calendar.Booking {
	kept, _ := n.Occupies(perNode)
	return kept
}

// KeptID is what the booking is called that keeps a node's slot from all others.
func KeptID(n *node.Node) string { return Kept(n, 0).ID }

// replaceBooking puts a booking where it is now; from is how it was until now.
func (p *places) replaceBooking(from, to calendar.Booking) {
	p.noteOriginal(from)
	p.Remove(from.ID)
	p.Force(to)
}

func (p *places) dropBooking(b calendar.Booking) {
	p.noteOriginal(b)
	p.Remove(b.ID)
}

func (p *places) noteOriginal(b calendar.Booking) {
	if p.borrowed && !p.noted[b.ID] {
		p.originals, p.noted[b.ID] = append(p.originals, b), true
	}
}

// restoreCalendar undoes every change of a borrowed calendar.
func (p *places) restoreCalendar() {
	for _, b := range p.originals {
		p.Remove(b.ID)
		p.Force(b)
	}
}

// readiness is how far the nodes of some slots are.
type readiness int

const (
	missing readiness = iota // a slot has no node
	stuck                    // a slot is taken by a node on its way out, or is not the pool's any more
	coming                   // every slot has a node, one is not ready yet
	ready                    // every slot has a ready node
)

func (s readiness) String() string { return [...]string{"missing", "stuck", "coming", "ready"}[s] }

func (c *computation) readiness(slots []int) readiness {
	worst := ready
	for _, slot := range slots {
		worst = min(worst, c.slotReadiness(slot))
	}
	return worst
}

// slotReadiness is how far a slot's node is for whoever is promised the slot. A node
// beyond the pool's slots is promised to nobody: it only serves what runs on it.
func (c *computation) slotReadiness(slot int) readiness {
	if c.isBeyond(slot) || isTaken(c, slot) {
		return stuck
	}
	return c.nodeReadiness(slot)
}

// isTaken reports whether a slot's node is not idle, or its cluster gives it no work, where
// a scheduler of its own places the work: a promise in an observed pool is of idle nodes.
func isTaken(c *computation, slot int) bool {
	if !c.Pool.Observed {
		return false
	}
	n := c.bySlot[slot]
	return c.held[slot] || n != nil && n.Taken != ""
}

// nodeReadiness is how far a slot's node is for what runs on it.
func (c *computation) nodeReadiness(slot int) readiness {
	n := c.bySlot[slot]
	switch {
	case n == nil && c.isBeyond(slot):
		return stuck
	case n == nil:
		return missing
	case n.State() == node.Ready:
		return ready
	case n.Coming():
		return coming
	default:
		return stuck
	}
}

// isBeyond reports whether the pool no longer has a slot.
func (c *computation) isBeyond(slot int) bool { return slot >= c.Pool.MaxNodes }

// losesSlot reports whether the pool no longer has one of the slots.
func (c *computation) losesSlot(slots []int) bool { return slices.ContainsFunc(slots, c.isBeyond) }

// Costs of a slot for a booking: the smaller, the sooner it is usable.
const (
	costReady   = 0
	costComing  = 2
	costMissing = 4
	costStuck   = 6
)

func (c *computation) costOf(slot int) int {
	switch c.slotReadiness(slot) {
	case ready:
		return costReady
	case coming:
		return costComing
	case missing:
		return costMissing
	default:
		return costStuck
	}
}

// totalCost adds up how far slots are from usable.
func (c *computation) totalCost(slots []int) int {
	sum := 0
	for _, slot := range slots {
		sum += c.costOf(slot)
	}
	return sum
}

// leastCost is the smallest cost of any slot of the pool.
func (c *computation) leastCost() int {
	switch {
	case c.readyCount > 0:
		return costReady
	case c.comingCount > 0:
		return costComing
	default:
		return costMissing
	}
}

// findBetter looks for slots that serve a booking sooner than its own: ready nodes
// rather than booting ones, a free slot rather than one whose node is on its way
// out. It returns false when moving gains nothing.
func (c *computation) findBetter(b calendar.Booking, shape capacity.Shape) ([]int, bool) {
	now := c.totalCost(b.Slots)
	if len(b.Slots) == 0 || now <= c.leastCost()*len(b.Slots) {
		return nil, false
	}
	c.places.Remove(b.ID)
	found, ok := c.findBest(shape, b.Interval.From(c.now), b.Slots)
	c.places.Force(b)
	if !ok || c.totalCost(found) >= now {
		return nil, false
	}
	return slices.Clone(found), true
}

// findBest returns the best slots for a booking that now sits on own: the sooner
// usable the better, staying before moving. They are overwritten by the next.
func (c *computation) findBest(shape capacity.Shape, window calendar.Interval, own []int) ([]int, bool) {
	tiers := c.tiersByCost()
	for _, slot := range own {
		if slot < c.Pool.MaxNodes {
			tiers[c.costOf(slot)].Add(slot)
		}
	}
	found, ok := c.places.FindInto(c.places.found[:0], shape, window, tiers)
	for _, slot := range own {
		if slot < c.Pool.MaxNodes {
			tiers[c.costOf(slot)].Remove(slot)
		}
	}
	c.places.found = found
	return found, ok
}

// tiersByCost are the pool's slots by what they cost, each preceded by an empty tier
// for a booking's own.
func (c *computation) tiersByCost() calendar.Tiers {
	if c.places.tiers == nil {
		tiers := make(calendar.Tiers, costStuck+2)
		for i := range tiers {
			tiers[i] = calendar.NewSlotSet(c.Pool.MaxNodes)
		}
		for slot := range c.Pool.MaxNodes {
			tiers[c.costOf(slot)+1].Add(slot)
		}
		c.places.tiers = tiers
	}
	return c.places.tiers
}

// moveToBetter moves a booking to better slots if there are any, and returns its
// slots.
func (c *computation) moveToBetter(kind Kind, b calendar.Booking, shape capacity.Shape) []int {
	if slots, ok := c.findBetter(b, shape); ok {
		c.moveBooking(Action{Kind: kind, Subject: b.ID, Slots: slots, Facts: Facts{Outside: c.losesSlot(b.Slots)}}, b)
		return slots
	}
	return b.Slots
}

// takeEarlierBoot moves a booking that waits for nodes to slots whose nodes come sooner, if
// somebody left any behind, and returns its slots: what boots the longest serves
// whoever waits the longest.
func (c *computation) takeEarlierBoot(kind Kind, b calendar.Booking, shape capacity.Shape) []int {
	own := c.lastRequested(b.Slots)
	if own.IsZero() || !c.oldestRequest.Before(own) {
		return b.Slots
	}
	c.places.Remove(b.ID)
	found, ok := c.places.FindInto(c.places.found[:0], shape, b.Interval.From(c.now), c.requestedBefore(own, b.Slots))
	c.places.Force(b)
	c.places.found = found
	if !ok || c.totalCost(found) != c.totalCost(b.Slots) {
		return b.Slots
	}
	slots := slices.Clone(found)
	c.moveBooking(Action{Kind: kind, Subject: b.ID, Slots: slots,
		Facts: Facts{Sooner: own.Sub(c.lastRequested(slots))}}, b)
	return slots
}

// lastRequested is when the last of the slots' nodes that are coming was asked for; zero
// unless all are ready or coming, and one is.
func (c *computation) lastRequested(slots []int) (last time.Time) {
	for _, slot := range slots {
		switch c.slotReadiness(slot) {
		case ready:
		case coming:
			last = calendar.Later(last, c.bySlot[slot].RequestedAt)
		default:
			return time.Time{}
		}
	}
	return last
}

// requestedBefore are the slots whose nodes are ready or were asked for before t: a
// booking's own first. They are overwritten by the next.
func (c *computation) requestedBefore(t time.Time, own []int) calendar.Tiers {
	mine, early, ready := &c.places.mine, &c.places.early, c.tiersByCost()[costReady+1]
	mine.Clear()
	early.Clear()
	for slot := range c.tiersByCost()[costComing+1].All() {
		if c.bySlot[slot].RequestedAt.Before(t) {
			early.Add(slot)
		}
	}
	for _, slot := range own {
		if ready.Has(slot) || early.Has(slot) {
			mine.Add(slot)
		}
	}
	return calendar.Tiers{*mine, ready, *early}
}

// moveBooking takes slots in the calendar for the rest of the run.
func (c *computation) moveBooking(a Action, b calendar.Booking) {
	a.Facts.From, a.Facts.To = b.Slots, a.Slots
	a.Facts.Cost, a.Facts.CostAfter = c.totalCost(b.Slots), c.totalCost(a.Slots)
	if !c.judge(a) {
		return
	}
	to := b
	to.Slots = a.Slots
	c.places.replaceBooking(b, to)
	c.noteUse(to.Slots, to.Interval)
}

// expectedReady is when the nodes of the slots are likely to be ready, at the median.
func (c *computation) expectedReady(slots []int) time.Time {
	return wait.LikelyReady(c.now, func(yield func(time.Time) bool) {
		for _, slot := range slots {
			n := c.bySlot[slot]
			switch {
			case n != nil && n.State() == node.Ready:
			case n != nil && n.Coming():
				if !yield(n.RequestedAt) {
					return
				}
			default:
				if !yield(c.earliestRequestOn(slot)) {
					return
				}
			}
		}
	}, c.boot50)
}
