package booking

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// shutTo are those of some slots whose nodes an organization's work could not enter now: a daemon was there and has
// fallen silent, or another organization is there, from whom the node does not keep it apart. A node that never had a
// daemon is entered in other ways.
func shutTo(p *txn.PoolTx, organizationID string, slots []int) ([]int, error) {
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
	var residents txn.Residents
	if slices.ContainsFunc(there, func(n node.Node) bool { return n.Isolation.Mixes(p.Pool.Isolation) }) {
		if residents, err = txn.ResidentsOf(p); err != nil {
			return nil, fmt.Errorf("asking who is on the nodes of pool %s: %w", p.Pool.Name, err)
		}
	}
	var shut []int
	for _, n := range there {
		last := seen[n.ID]
		if !last.IsZero() && ledger.IsSilent(n, last, p.Tx.Now()) || residents.Bars(n.Slot, organizationID) {
			shut = append(shut, n.Slot)
		}
	}
	return shut, nil
}

// leaveBarred takes those slots out on which others are whom the node does not keep an organization's work apart from.
func leaveBarred(p *txn.PoolTx, organizationID string, allowed *calendar.SlotSet) error {
	residents, err := txn.ResidentsOf(p)
	if err != nil {
		return fmt.Errorf("asking who is on the nodes of pool %s: %w", p.Pool.Name, err)
	}
	for _, slot := range residents.Slots() {
		if residents.Bars(slot, organizationID) {
			allowed.Remove(slot)
		}
	}
	return nil
}

// putShutLast puts the slots of an order that an organization's work could not enter now behind all others.
func putShutLast(p *txn.PoolTx, organizationID string, tiers calendar.Tiers) (calendar.Tiers, error) {
	all := make([]int, p.Pool.MaxNodes)
	for slot := range all {
		all[slot] = slot
	}
	shut, err := shutTo(p, organizationID, all)
	if err != nil {
		return nil, err
	}
	last := calendar.NewSlotSet(p.Pool.MaxNodes)
	for _, slot := range shut {
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
