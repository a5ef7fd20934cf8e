package plan

import (
	"slices"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// lend keeps idle nodes for promises that begin soon on slots without one: each
// will be moved to a ready node when its time comes, so the node that is cheapest
// to keep waits for it. It returns the nodes that are left.
func (c *computation) lend(idle []*node.Node) []*node.Node {
	if !c.lull.IsZero() {
		c.at(c.lull.Add(-c.lead - c.boot50))
	}
	served := map[int]bool{}
	for _, r := range c.near {
		if r.State() != reservation.Booked || c.paused(r) {
			continue
		}
		for at, slot := range r.Slots {
			if !c.waits(r, slot) || served[slot] {
				continue
			}
			served[slot] = true
			i := slices.IndexFunc(idle,
				func(n *node.Node) bool { return c.places.Fits(n.Slot, r.Shape.On(at), r.Window) })
			if i >= 0 {
				idle = slices.Delete(idle, i, i+1)
			}
		}
	}
	return idle
}

// waits reports whether a promise that begins soon, but is not warmed yet, has no
// node on the slot.
func (c *computation) waits(r *reservation.Reservation, slot int) bool {
	soon := !c.reach(r).After(c.now)
	return soon && !c.wanted[slot] && c.slotStanding(slot) < coming
}
