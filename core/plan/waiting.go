package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
)

// Wait estimates how much longer an allocation or reservation of the pool waits that
// gives up at a time; false when it does not wait, or is likely to give up.
func (o *Outlook) Wait(id string, until time.Time) (wait.Estimate, bool) {
	f, waits := o.Waiting(id)
	if !waits {
		return wait.Estimate{}, false
	}
	return wait.EstimateFrom(f).Within(until.Sub(o.c.now))
}

// Expires reports whether a waitlisted reservation is likely to give up at a time, before
// it has a place.
func (o *Outlook) Expires(id string, until time.Time) bool {
	if _, waits := o.Waiting(id); !waits {
		return o.Hopeless(id)
	}
	_, inTime := o.Wait(id, until)
	return !inTime
}

// Waiting gathers what an allocation or reservation of the pool waits for, for
// Wait; false when it does not wait: it is over, in use or ready, its time has not
// come, or it ends before there is a place.
func (o *Outlook) Waiting(id string) (wait.Facts, bool) {
	f, waits := o.waitFacts(id)
	return f, waits && (f.Missing == 0 || o.c.Supply.Stopped() == "") // nobody knows when a person comes
}

func (o *Outlook) waitFacts(id string) (wait.Facts, bool) {
	c := o.c
	if a, ok := o.findAllocation(id); ok {
		if c.losesSlot(o.slotsOf(id, a.Slots)) { // nobody knows when there is a place again
			return wait.Facts{}, false
		}
		f := waitOn(c, o.slotsOf(id, a.Slots), a.Shape, a.ID)
		noteInstead(c, &f, a.ID, a.Shape, a.Window)
		return f, a.State() == allocation.Pending
	}
	r, ok := o.findReservation(id)
	switch {
	case !ok || !r.Window.End.After(c.now):
		return wait.Facts{}, false
	case r.State() == reservation.Waitlisted:
		return waitForPlace(c, r)
	case c.isPaused(r), c.losesSlot(o.slotsOf(id, r.Slots)):
		return wait.Facts{}, false
	case r.State() == reservation.Warming, r.State() == reservation.Booked && r.Degraded:
		f := waitOn(c, o.slotsOf(id, r.Slots), r.Shape, "")
		noteInstead(c, &f, r.ID, r.Shape, r.Window)
		return f, true
	default:
		return wait.Facts{}, false
	}
}

// waitOn is the wait for the nodes of slots that somebody has, and for the devices
// of the shape on each that are in hands other than the holder's.
func waitOn(c *computation, slots []int, shape capacity.Shape, holder string) wait.Facts {
	f := wait.Facts{Boot: c.Boot, Leases: c.Leases}
	for i, slot := range slots {
		n := c.bySlot[slot]
		switch c.slotReadiness(slot) {
		case coming:
			f.Ages = append(f.Ages, c.now.Sub(n.RequestedAt))
			continue
		case ready:
			if c.inUse[n.ID]+shape.On(i) <= c.Pool.PerNode {
				continue
			}
		case stuck:
			noteMissing(c, &f, slot) // its node must go first, and another one boot
		default:
			noteMissing(c, &f, slot)
			continue
		}
		if p, held := heldUntil(c, n, holder); held {
			f.Places = append(f.Places, p)
			f.Need++
		}
	}
	return f
}

// noteMissing notes that a node must still be asked for.
func noteMissing(c *computation, f *wait.Facts, slot int) {
	f.Missing++
	f.Blocked = max(f.Blocked, c.earliestRequestOn(slot).Sub(c.now))
	if s := c.Supply; s.Blocks > 0 {
		f.Stock = &wait.StockOut{Odds: s.Odds(c.now), Refused: s.Blocks, Block: c.policy.StockOut}
	}
	for _, w := range c.withheld {
		if w.Slot == slot && slices.Contains(w.Codes, HeldTrial) {
			f.Trials = trialAges(c)
		}
	}
}

// noteInstead notes, while the provider has nothing, the ready nodes that somebody who
// waits for a node could be moved to when the leases on them end. Only one missing
// node is looked at: for more, it is the provider who must have some.
func noteInstead(c *computation,
	f *wait.Facts, id string, shape capacity.Shape, window calendar.Interval) {
	if f.Stock == nil || f.Missing != 1 || shape.Nodes != 1 {
		return
	}
	holders := holdersByID(c)
	asks := &reservation.Reservation{ID: id, Shape: shape, Window: window}
	for slot := range c.Pool.MaxNodes {
		if c.slotReadiness(slot) != ready {
			continue
		}
		if p, ok := roomOn(c, slot, asks, holders); ok {
			f.Instead = append(f.Instead, p)
		}
	}
	f.Cleaning, f.Turn = c.places.Margin(), 1
	for _, a := range c.byAge {
		if a.ID == id {
			break
		}
		if a.State() == allocation.Pending && c.readiness(a.Slots) < coming {
			f.Turn += a.Shape.Nodes
		}
	}
}

// trialAges are the ages of the nodes that are on their way.
func trialAges(c *computation) []time.Duration {
	var ages []time.Duration
	for _, n := range c.bySlot {
		if n != nil && n.Coming() {
			ages = append(ages, c.now.Sub(n.RequestedAt))
		}
	}
	for range c.requestedCount {
		ages = append(ages, 0)
	}
	return ages
}

// heldUntil is when the leases on a node end.
func heldUntil(c *computation, n *node.Node, holder string) (wait.Place, bool) {
	var p wait.Place
	if n == nil {
		return p, false
	}
	for _, a := range c.byAge {
		on := slices.ContainsFunc(a.Devices, func(h allocation.Held) bool { return h.NodeID == n.ID })
		if a.Holds() && a.ID != holder && on {
			p.Holds = append(p.Holds, leaseHold(c, a))
			p.Room = max(p.Room, a.LeaseUntil.Sub(c.now))
		}
	}
	return p, len(p.Holds) > 0
}

func leaseHold(c *computation, a *allocation.Allocation) wait.Hold {
	return wait.Hold{Age: c.now.Sub(a.ActiveAt), Lease: a.LeaseUntil.Sub(a.ActiveAt)}
}

// waitForPlace is the wait of a waitlisted reservation: until so many slots have
// room for the rest of its window as it and those before it in the queue need.
// False when they have not before its window ends, so that only somebody's change
// of mind can help.
func waitForPlace(c *computation, r *reservation.Reservation) (wait.Facts, bool) {
	f := wait.Facts{Boot: c.Boot, Leases: c.Leases, Cleaning: c.places.Margin(),
		Starts: max(0, r.Window.Start.Sub(c.now))}
	f.Need = r.Shape.Nodes + queuedBefore(c, r)
	rooms := slotsWithRoom(c, r)
	if f.Need > len(rooms) {
		return wait.Facts{}, false
	}
	slots := make([]int, r.Shape.Nodes)
	for i := range slots {
		slots[i] = rooms[i].slot
	}
	nodes := waitOn(c, slots, capacity.Shape{}, "")
	f.Ages, f.Missing, f.Blocked, f.Trials, f.Stock = nodes.Ages, nodes.Missing, nodes.Blocked, nodes.Trials,
		nodes.Stock
	for _, x := range rooms[:min(len(rooms), max(wait.MostPlaces, f.Need))] {
		f.Places = append(f.Places, x.Place)
	}
	return f, true
}

// Hopeless reports whether a waitlisted reservation gets no place before its window
// ends even if nobody waited before it, unless somebody leaves what they have booked.
func (o *Outlook) Hopeless(id string) bool {
	r, ok := o.findReservation(id)
	return ok && r.State() == reservation.Waitlisted && len(slotsWithRoom(o.c, r)) < r.Shape.Nodes
}

// queuedBefore is how many nodes those need who wait for the same time and are tried
// before somebody.
func queuedBefore(c *computation, of *reservation.Reservation) int {
	gpus := 0
	for _, r := range c.waitingInOrder() {
		if r.ID == of.ID {
			break
		}
		if r.Window.Overlaps(of.Window) {
			gpus += r.Shape.GPUs()
		}
	}
	return (gpus + c.Pool.PerNode - 1) / max(1, c.Pool.PerNode)
}

// slotRoom is a slot that will have room.
type slotRoom struct {
	wait.Place
	slot int
}

// holdersByID are the allocations that hold GPUs, by their ids.
func holdersByID(c *computation) map[string]*allocation.Allocation {
	holders := make(map[string]*allocation.Allocation, len(c.byAge))
	for _, a := range c.byAge {
		if a.Holds() {
			holders[a.ID] = a
		}
	}
	return holders
}

// slotsWithRoom are the slots that will have room for a waitlisted reservation before its
// window ends, the soonest first.
func slotsWithRoom(c *computation, r *reservation.Reservation) []slotRoom {
	holders := holdersByID(c)
	var found []slotRoom
	for slot := range c.Pool.MaxNodes {
		if p, ok := roomOn(c, slot, r, holders); ok {
			found = append(found, slotRoom{p, slot})
		}
	}
	slices.SortStableFunc(found, func(a, b slotRoom) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(c.costOf(a.slot), c.costOf(b.slot)))
	})
	return found
}

// roomOn is when a slot has room for the rest of a window: at the first end of a
// booking on it from which on it fits. A smaller last node counts as a full one.
func roomOn(c *computation, slot int, r *reservation.Reservation,
	holders map[string]*allocation.Allocation) (wait.Place, bool) {
	margin, window := c.places.Margin(), r.Window.From(c.now)
	if c.places.Fits(slot, r.Shape.PerNode, window) {
		return wait.Place{}, true
	}
	around := calendar.Interval{Start: window.Start.Add(-margin), End: window.End.Add(margin)}
	on := c.places.On(slot, around)
	slices.SortStableFunc(on, func(a, b calendar.Booking) int { return a.Interval.End.Compare(b.Interval.End) })
	var p wait.Place
	for _, b := range on {
		from := b.Interval.End.Add(margin)
		if !from.Before(window.End) {
			return wait.Place{}, false
		}
		p.Room = max(0, from.Sub(c.now))
		if a := holders[b.ID]; a != nil {
			p.Holds = append(p.Holds, leaseHold(c, a))
		} else {
			p.Fixed = p.Room
		}
		if c.places.Fits(slot, r.Shape.PerNode, window.From(from)) {
			return p, true
		}
	}
	return wait.Place{}, false
}
