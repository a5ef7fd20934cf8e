package booking

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// maySlots are the slots of a pool on which a job may run, and would be started. It returns false if that is all of
// them.
func maySlots(p *txn.PoolTx, j job.Job) (allowed calendar.SlotSet, narrower bool, err error) {
	allowed = calendar.NewSlotSet(p.Pool.MaxNodes)
	seen, err := p.DaemonsSeen()
	if err != nil {
		return allowed, false, err
	}
	boots := txn.MayBoot(j, p.Pool.Pool)
	for slot := range p.Pool.MaxNodes {
		if boots {
			allowed.Add(slot)
		}
	}
	for _, n := range p.Nodes.Rows {
		switch {
		case node.Machine.Terminal(n.State()) || n.Slot >= p.Pool.MaxNodes:
		case txn.MayUse(j, p.Pool.Pool, *n) && (j.Reservation != "" || isServing(*n, seen[n.ID], p.Tx.Now())):
			allowed.Add(n.Slot) // what is reserved, it has
		default:
			allowed.Remove(n.Slot)
		}
	}
	if err = leaveBarred(p, j.OrganizationID, &allowed); err == nil {
		err = leaveApart(p, j, &allowed)
	}
	return allowed, allowed.Len() < p.Pool.MaxNodes, err
}

// isServing reports whether jobs are started on a node now.
func isServing(n node.Node, seen, now time.Time) bool {
	return !n.Heat.IsHot(now) && !ledger.IsSilent(n, seen, now)
}

// MayStay reports whether a job may run on its slots, and whether others may be worse.
func MayStay(p *txn.PoolTx, j job.Job, slots []int) (may, pinned bool, err error) {
	allowed, narrower, err := maySlots(p, j)
	return !slices.ContainsFunc(slots, func(slot int) bool { return !allowed.Has(slot) }), narrower, err
}

// tiersOfJob are those of an order's slots on which a job may run, each tier with what it prefers first.
func tiersOfJob(p *txn.PoolTx, j job.Job, tiers calendar.Tiers) (calendar.Tiers, error) {
	allowed, narrower, err := maySlots(p, j)
	if err != nil {
		return nil, err
	}
	ranks, err := rankSlots(p, j)
	if err != nil {
		return nil, err
	}
	worst := 0
	for _, rank := range ranks {
		worst = max(worst, rank)
	}
	if !narrower && worst == 0 {
		return tiers, nil
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
	return out, nil
}

// rankSlots are the places of a pool's slots in a job's order, from 0: nodes come last whose daemon has not joined yet,
// and before that those whose nodes have more of the labels that it prefers come first, of those the ones at or near
// the jobs that it wants to be near, and of those the cool ones.
func rankSlots(p *txn.PoolTx, j job.Job) ([]int, error) {
	seen, err := p.DaemonsSeen()
	if err != nil {
		return nil, err
	}
	prefers := placement.NewSet(j.Where.Prefers...)
	heat := p.Tx.Config.Scheduling.Now().Of(p.Pool.Name).Heat
	ranks := make([]int, p.Pool.MaxNodes)
	lacks := func(n node.Node) int {
		has, _ := placement.NewSet(n.LabelWords(p.Pool.Pool)...).Covers(prefers)
		return len(j.Where.Prefers) - has
	}
	far, err := distances(p, j)
	if err != nil {
		return nil, err
	}
	ways := 1 // in which slots differ that lack as many labels, but for heat
	if far != nil {
		ways += farthest
	}
	place := func(slot, lacking int) int {
		if far == nil {
			return 2 * lacking
		}
		return 2 * (ways*lacking + far[slot])
	}
	empty := lacks(node.Node{})
	for slot := range ranks {
		ranks[slot] = place(slot, empty)
	}
	for _, n := range p.Nodes.Rows {
		if node.Machine.Terminal(n.State()) || n.Slot >= len(ranks) {
			continue
		}
		if prefers != "" {
			ranks[n.Slot] = place(n.Slot, lacks(*n))
		}
		if n.Heat.IsWarm(heat) {
			ranks[n.Slot]++
		}
		if n.State() == node.Ready && seen[n.ID].IsZero() {
			ranks[n.Slot] += 2 * ways * (len(j.Where.Prefers) + 1)
		}
	}
	return ranks, nil
}

// worstRank is the place in a job's order of the worst of some slots; without any, of as many as it needs of the best
// on which it may run.
func worstRank(p *txn.PoolTx, j job.Job, slots []int) (worst int, err error) {
	ranks, err := rankSlots(p, j)
	if err != nil {
		return 0, err
	}
	if len(slots) == 0 {
		allowed, _, err := maySlots(p, j)
		if err != nil {
			return 0, err
		}
		slots = slices.SortedStableFunc(allowed.All(), func(a, b int) int { return ranks[a] - ranks[b] })
		slots = slots[:min(j.Shape.Nodes, len(slots))]
	}
	for _, slot := range slots {
		worst = max(worst, ranks[slot])
	}
	return worst, nil
}

// suitsFirst puts those pools first that have, or make, enough nodes on which the job may run; others may be labelled
// later.
func suitsFirst(pools []*txn.PoolTx, in func(*txn.PoolTx) job.Job) ([]*txn.PoolTx, error) {
	if len(pools) < 2 {
		return pools, nil
	}
	var first, last []*txn.PoolTx
	for _, p := range pools {
		j := in(p)
		allowed, _, err := maySlots(p, j)
		if err != nil {
			return nil, err
		}
		if allowed.Len() < j.Shape.Nodes {
			last = append(last, p)
		} else {
			first = append(first, p)
		}
	}
	return append(first, last...), nil
}
