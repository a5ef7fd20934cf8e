package txn

import (
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
)

// SetSlotBlocked keeps the slot of a node that an operator keeps from all bookings, or
// opens it again.
func (d *cachedPool) SetSlotBlocked(n node.Node) {
	if d.Places == nil {
		return
	}
	if !n.Kept() {
		d.OpenSlot(n)
		return
	}
	d.Places.Force(plan.Kept(&n, d.Definition.PerNode))
}

func (d *cachedPool) OpenSlot(n node.Node) { d.Places.Remove(plan.KeptID(&n)) }
