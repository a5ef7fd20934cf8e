package booking

import (
	"fmt"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// silentOn are those of some slots on whose node a daemon was, and has fallen silent. A node that never had one is
// entered in other ways.
func silentOn(p *txn.PoolTx, slots []int) ([]int, error) {
	var there []node.Node
	for _, slot := range slots {
		if n, ok := p.NodeOnSlot(slot); ok {
			there = append(there, n)
		}
	}
	seen, err := txn.DaemonsSeen(p.Tx.Port, there)
	if err != nil {
		return nil, fmt.Errorf("asking for the daemons of some nodes of pool %s: %w", p.Pool.Name, err)
	}
	var silent []int
	for _, n := range there {
		if last := seen[n.ID]; !last.IsZero() && ledger.IsSilent(n, last, p.Tx.Now()) {
			silent = append(silent, n.Slot)
		}
	}
	return silent, nil
}

// putSilentLast puts the slots of an order whose daemons have fallen silent behind all others.
func putSilentLast(p *txn.PoolTx, tiers calendar.Tiers) (calendar.Tiers, error) {
	all := make([]int, p.Pool.MaxNodes)
	for slot := range all {
		all[slot] = slot
	}
	silent, err := silentOn(p, all)
	if err != nil {
		return nil, err
	}
	last := calendar.NewSlotSet(p.Pool.MaxNodes)
	for _, slot := range silent {
		last.Add(slot)
	}
	back, front := splitTiers(p, tiers, last)
	return append(front, back...), nil
}

// splitTiers divides each of an order's tiers into those of its slots that are in a set, and the others.
func splitTiers(p *txn.PoolTx, tiers calendar.Tiers, set calendar.SlotSet) (in, out calendar.Tiers) {
	for _, tier := range tiers {
		inside, outside := calendar.NewSlotSet(p.Pool.MaxNodes), calendar.NewSlotSet(p.Pool.MaxNodes)
		for slot := range tier.All() {
			if set.Has(slot) {
				inside.Add(slot)
			} else {
				outside.Add(slot)
			}
		}
		in, out = append(in, inside), append(out, outside)
	}
	return in, out
}
