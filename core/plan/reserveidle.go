package plan

import (
	"slices"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// reserveIdle keeps idle nodes for promises that begin soon on slots without one: each
// will be moved to a ready node when its time comes, so the node that is cheapest
// to keep waits for it. It returns the nodes that are left.
func reserveIdle(c *computation, idle []*node.Node) []*node.Node {
	if !c.nextUncovered.IsZero() {
		c.wakeAt(c.nextUncovered.Add(-c.lead - c.boot50))
	}
	served := map[int]bool{}
	for _, r := range c.near {
		if r.State() != reservation.Booked || c.isPaused(r) {
			continue
		}
		for at, slot := range r.Slots {
			if !lacksNodeSoon(c, r, slot) || served[slot] {
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

// lacksNodeSoon reports whether a promise that begins soon, but is not warmed yet, has no
// node on the slot.
func lacksNodeSoon(c *computation, r *reservation.Reservation, slot int) bool {
	soon := !c.keepFrom(r).After(c.now)
	return soon && !c.wanted[slot] && c.slotReadiness(slot) < coming
}
