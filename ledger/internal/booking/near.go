package booking

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// mostGroups bounds for how many groups of nodes a gang is decided on.
const mostGroups = 32

// decided is what was decided on a request that starts now.
type decided struct {
	txn.Verdict
	window calendar.Interval
}

// bringTogether puts a gang on nodes near each other, as operators label them, where it begins as soon there, nobody
// gives way who would not have, and a job has its labels as well: on those of the smallest group with room, which
// leaves the larger ones for larger gangs.
func bringTogether(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest, first decided) (
	txn.Verdict, calendar.Interval, error) {
	if req.shape.Nodes < 2 {
		return first.Verdict, first.window, nil
	}
	for _, group := range groupsFor(p, req.shape.Nodes) {
		if isWithin(group, first.Slots) {
			return first.Verdict, first.window, nil
		}
		req.together = &group
		d, window, err := decideNow(tx, p, h, req)
		if err != nil {
			return d, window, err
		}
		if !d.Accepted() || !isWithin(group, d.Slots) {
			continue
		}
		good, err := isAsGood(p, req, decided{d, window}, first)
		if err != nil || good {
			return d, window, err
		}
	}
	return first.Verdict, first.window, nil
}

// isAsGood reports whether nobody loses by a decision instead of another one.
func isAsGood(p *txn.PoolTx, req takeRequest, d, other decided) (bool, error) {
	if other.LeavesCalendar() && !d.LeavesCalendar() || allReady(p, other.Slots) && !allReady(p, d.Slots) {
		return false, nil
	}
	if req.job == nil {
		return true, nil
	}
	rank, err := worstRank(p, *req.job, d.Slots)
	if err != nil {
		return false, err
	}
	before, err := worstRank(p, *req.job, other.Slots)
	return rank <= before, err
}

// groupsFor are the groups of slots whose nodes are near each other and at least as many as are asked for, the smallest
// first.
func groupsFor(p *txn.PoolTx, nodes int) []calendar.SlotSet {
	key := p.Tx.Config.Scheduling.Now().Of(p.Pool.Name).NearLabel
	byValue := map[string]*calendar.SlotSet{}
	for _, n := range p.Nodes.Rows {
		value := n.Label(p.Pool.Pool, key)
		if value == "" || node.Machine.Terminal(n.State()) || n.Slot >= p.Pool.MaxNodes {
			continue
		}
		if byValue[value] == nil {
			byValue[value] = new(calendar.NewSlotSet(p.Pool.MaxNodes))
		}
		byValue[value].Add(n.Slot)
	}
	var groups []calendar.SlotSet
	for _, value := range txn.SortedKeys(byValue) {
		if byValue[value].Len() >= nodes {
			groups = append(groups, *byValue[value])
		}
	}
	slices.SortStableFunc(groups, func(a, b calendar.SlotSet) int { return cmp.Compare(a.Len(), b.Len()) })
	return groups[:min(len(groups), mostGroups)]
}

func isWithin(group calendar.SlotSet, slots []int) bool {
	return !slices.ContainsFunc(slots, func(slot int) bool { return !group.Has(slot) })
}
