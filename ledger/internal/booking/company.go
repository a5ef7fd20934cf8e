package booking

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
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

// NamesArray reports whether any of the names is an array's, of which an allocation says nothing.
func NamesArray(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return ids.Check(ids.Array, name) == nil })
}

// companions are the jobs of allocations, in their order; with their arrays, if the names by which somebody may mean
// them say so. These are read at once.
func companions(tx *txn.Tx, all []*allocation.Allocation, names []string) ([]job.Job, error) {
	jobs := make([]job.Job, len(all))
	for i, a := range all {
		jobs[i] = StandIn(*a)
	}
	if !NamesArray(names) {
		return jobs, nil
	}
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.JobID
	}
	arrays, err := txn.ArraysOf(tx, ids)
	for i := range jobs {
		jobs[i].Array = arrays[jobs[i].ID]
	}
	return jobs, err
}

// leaveApart takes those slots out where somebody is with whom the job is not to share a node.
func leaveApart(p *txn.PoolTx, j job.Job, allowed *calendar.SlotSet) error {
	there := slices.DeleteFunc(othersOf(p, j), func(a *allocation.Allocation) bool {
		return len(j.Where.Apart)+len(a.Apart) == 0
	})
	others, err := companions(p.Tx, there, j.Where.Apart)
	if err != nil {
		return err
	}
	for i, a := range there {
		if !j.StaysApart(others[i]) {
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
	there := othersOf(p, j)
	others, err := companions(p.Tx, there, j.Where.Near)
	if err != nil {
		return nil, err
	}
	for i, a := range there {
		if !slices.ContainsFunc(j.Where.Near, others[i].IsCalled) {
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
