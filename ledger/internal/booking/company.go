package booking

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// StandIn is the job of an allocation, as far as the allocation tells: all but its array.
func StandIn(a allocation.Allocation) job.Job {
	return job.Job{ID: a.JobID, OrganizationID: a.OrganizationID, Name: a.Name, Where: job.Where{Apart: a.Apart}}
}

// othersOf are the jobs that have GPUs in the job's pool and may be of its organization's, by their allocations.
func othersOf(p *txn.PoolTx, j job.Job) (all []*allocation.Allocation) {
	for _, a := range p.Allocations.Rows {
		if a.Live() && a.JobID != "" && a.JobID != j.ID && a.OrganizationID == j.OrganizationID {
			all = append(all, a)
		}
	}
	return all
}

// namesArray reports whether any of the names is an array's, of which an allocation says nothing.
func namesArray(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return ids.Check(ids.Array, name) == nil })
}

// companion is the job of an allocation; with its array, if that may matter.
func companion(tx *txn.Tx, a *allocation.Allocation, names []string) (job.Job, error) {
	is := StandIn(*a)
	if !namesArray(names) {
		return is, nil
	}
	whole, err := txn.FindJob(tx, a.JobID)
	is.Array = whole.Array
	return is, ledger.IgnoreMissing(err)
}

// leaveApart takes those slots out where somebody is with whom the job is not to share a node.
func leaveApart(p *txn.PoolTx, j job.Job, allowed *calendar.SlotSet) error {
	for _, a := range othersOf(p, j) {
		if len(j.Where.Apart)+len(a.Apart) == 0 {
			continue
		}
		other, err := companion(p.Tx, a, j.Where.Apart)
		if err != nil {
			return err
		}
		if !j.StaysApart(other) {
			continue
		}
		for _, slot := range a.Slots {
			allowed.Remove(slot)
		}
	}
	return nil
}

// farthest is the distance of a node that is not near those whom a job wants to be near.
const farthest = 2

// distances are how far a pool's slots are from those that a job wants to be near: 0, 1 by the pool's label of
// nearness, or farthest. nil: it wants to be near nobody who is there.
func distances(p *txn.PoolTx, j job.Job) ([]int, error) {
	if len(j.Where.Near) == 0 {
		return nil, nil
	}
	var far []int
	groups := map[string]bool{}
	key := p.Tx.Config.Scheduling.Now().Of(p.Pool.Name).NearLabel
	for _, a := range othersOf(p, j) {
		other, err := companion(p.Tx, a, j.Where.Near)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(j.Where.Near, other.IsCalled) {
			continue
		}
		if far == nil {
			far = slices.Repeat([]int{farthest}, p.Pool.MaxNodes)
		}
		for _, slot := range a.Slots {
			if slot < len(far) {
				far[slot] = 0
			}
		}
	}
	groupsAt := func(note func(slot int, group string)) {
		for _, n := range p.Nodes.Rows {
			group := n.Label(p.Pool.Pool, key)
			if group != "" && !node.Machine.Terminal(n.State()) && n.Slot < len(far) {
				note(n.Slot, group)
			}
		}
	}
	groupsAt(func(slot int, group string) { groups[group] = groups[group] || far[slot] == 0 })
	groupsAt(func(slot int, group string) {
		if groups[group] {
			far[slot] = min(far[slot], 1)
		}
	})
	return far, nil
}
