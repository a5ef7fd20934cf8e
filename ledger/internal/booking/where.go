package booking

import (
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// RequestOf is what a job asks of its nodes.
func RequestOf(j job.Job) placement.Request {
	return placement.Request{Shape: j.Shape, Labels: placement.NewSet(j.Where.Constraints...),
		Prefers: placement.NewSet(j.Where.Prefers...), Tolerates: placement.NewSet(j.Where.Tolerates...)}
}

// MayUse reports whether a job may run on a node, by what operators say of it and the job of its nodes.
func MayUse(j job.Job, n node.Node) bool {
	if j.StaysOff(n.ID) {
		return false
	}
	if len(j.Where.Constraints)+len(n.Taints) == 0 {
		return true
	}
	return RequestOf(j).Allows(placement.NewSet(n.LabelWords()...), placement.NewSet(n.Taints...))
}

// MayBoot reports whether a job may run on a node that is made for it: it has neither labels nor taints.
func MayBoot(j job.Job) bool { return len(j.Where.Constraints) == 0 }

// maySlots are the slots of a pool on which a job may run. It returns false if that is all of them.
func maySlots(p *txn.PoolTx, j job.Job) (allowed calendar.SlotSet, narrower bool) {
	allowed = calendar.NewSlotSet(p.Pool.MaxNodes)
	for slot := range p.Pool.MaxNodes {
		if MayBoot(j) {
			allowed.Add(slot)
		}
	}
	for _, n := range p.Nodes.Rows {
		switch {
		case node.Machine.Terminal(n.State()) || n.Slot >= p.Pool.MaxNodes:
		case MayUse(j, *n) && (j.Reservation != "" || !n.Heat.IsHot(p.Tx.Now())): // what is reserved, it has
			allowed.Add(n.Slot)
		default:
			allowed.Remove(n.Slot)
		}
	}
	return allowed, allowed.Len() < p.Pool.MaxNodes
}

// MayStay reports whether a job may run on its slots, and whether others may be worse.
func MayStay(p *txn.PoolTx, j job.Job, slots []int) (may, pinned bool) {
	allowed, narrower := maySlots(p, j)
	return !slices.ContainsFunc(slots, func(slot int) bool { return !allowed.Has(slot) }), narrower
}

// tiersOfJob are those of an order's slots on which a job may run, each tier with what it prefers first.
func tiersOfJob(p *txn.PoolTx, j job.Job, tiers calendar.Tiers) calendar.Tiers {
	allowed, narrower := maySlots(p, j)
	ranks := rankSlots(p, j)
	worst := 0
	for _, rank := range ranks {
		worst = max(worst, rank)
	}
	if !narrower && worst == 0 {
		return tiers
	}
	out := make(calendar.Tiers, 0, len(tiers))
	for _, tier := range tiers {
		for rank := range worst + 1 {
			some := calendar.NewSlotSet(p.Pool.MaxNodes)
			for slot := range tier.All() {
				if allowed.Has(slot) && ranks[slot] == rank {
					some.Add(slot)
				}
			}
			out = append(out, some)
		}
	}
	return out
}

// rankSlots are the places of a pool's slots in a job's order, from 0: those whose nodes have more of the labels that
// it prefers come first, and of those the cool ones.
func rankSlots(p *txn.PoolTx, j job.Job) []int {
	prefers := placement.NewSet(j.Where.Prefers...)
	heat := p.Tx.Config.Scheduling.Now().Of(p.Pool.Name).Heat
	ranks := make([]int, p.Pool.MaxNodes)
	for slot := range ranks {
		ranks[slot] = 2 * len(j.Where.Prefers)
	}
	for _, n := range p.Nodes.Rows {
		if node.Machine.Terminal(n.State()) || n.Slot >= len(ranks) {
			continue
		}
		if prefers != "" {
			has, _ := placement.NewSet(n.LabelWords()...).Covers(prefers)
			ranks[n.Slot] -= 2 * has
		}
		if n.Heat.IsWarm(heat) {
			ranks[n.Slot]++
		}
	}
	return ranks
}
