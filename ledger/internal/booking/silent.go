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
	front, back := make(calendar.Tiers, 0, 2*len(tiers)), make(calendar.Tiers, 0, len(tiers))
	for _, tier := range tiers {
		served, unserved := calendar.NewSlotSet(p.Pool.MaxNodes), calendar.NewSlotSet(p.Pool.MaxNodes)
		for slot := range tier.All() {
			if last.Has(slot) {
				unserved.Add(slot)
			} else {
				served.Add(slot)
			}
		}
		front, back = append(front, served), append(back, unserved)
	}
	return append(front, back...), nil
}
