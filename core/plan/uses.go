package plan

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// uses returns, for each slot, when the first booking that is not over begins;
// the zero time is never. Guesses that are paused use nothing.
func (c *computation) uses() []time.Time {
	first := make([]time.Time, len(c.bySlot))
	note := func(slots []int, iv calendar.Interval) {
		if !iv.End.After(c.now) {
			return
		}
		for _, slot := range slots {
			first[slot] = earlier(first[slot], iv.Start)
		}
	}
	for _, r := range c.byStart {
		if r.Placed() && !c.shifted[r.ID] && !c.paused(r) {
			note(r.Slots, r.Window)
		}
	}
	for _, a := range c.byAge {
		note(a.Slots, a.Window)
	}
	for _, a := range c.actions { // what was moved is used where it is now
		if r := c.moved(a); r != nil {
			note(a.Slots, r.Window)
		}
	}
	return first
}

func (c *computation) moved(a Action) *reservation.Reservation {
	if a.Kind != MoveReservation {
		return nil
	}
	return c.reservation(a.Subject)
}

// earlier is the first of two times, of which the zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// lend keeps idle nodes for promises that begin soon on slots without one: each
// will be moved to a ready node when its time comes, so the node that is cheapest
// to keep waits for it. It returns the nodes that are left, and notes how long
// until the next promise that none waits for.
func (c *computation) lend(idle []*node.Node) []*node.Node {
	served := map[int]bool{}
	for _, r := range c.byStart {
		if r.State() != reservation.Booked || c.paused(r) || len(r.Slots) == 0 || c.wanted[r.Slots[0]] {
			continue
		}
		for _, slot := range r.Slots {
			if c.slotStanding(slot) >= coming || served[slot] {
				continue
			}
			if due := r.Window.Start.Add(-c.lead - c.boot50); due.After(c.now) {
				c.at(due)
				c.lull = r.Window.Start.Sub(c.now)
				return idle // those after it begin later still
			}
			served[slot] = true
			i := slices.IndexFunc(idle, func(n *node.Node) bool { return c.places.Fits(n.Slot, r.Shape.PerNode, r.Window) })
			if i >= 0 {
				idle = slices.Delete(idle, i, i+1)
			}
		}
	}
	return idle
}
