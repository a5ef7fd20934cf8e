package booking

import (
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// openSlotsOf opens the slots of an allocation whose nodes are kept until the caller
// calls back: what runs there may run on.
func openSlotsOf(p *txn.PoolTx, a allocation.Allocation) (back func()) {
	var kept []node.Node
	for _, slot := range a.Slots {
		if n, ok := p.NodeOnSlot(slot); ok && n.Kept() {
			p.OpenSlot(n)
			kept = append(kept, n)
		}
	}
	return func() {
		for _, n := range kept {
			p.SetSlotBlocked(n)
		}
	}
}
