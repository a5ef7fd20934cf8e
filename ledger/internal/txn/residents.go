package txn

import (
	"iter"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Residents are the organizations for which nodes are that do not keep two of them apart as well as their pool asks:
// nobody else's work is let in there. They are those whose work has begun there, or of which something may be left;
// where there are none, who has had GPUs there for longest. Others who hold GPUs there bar nobody.
type Residents struct {
	bySlot map[int][]string // the organizations
}

// Bars reports whether an organization's work would not be let in on a slot.
func (r Residents) Bars(slot int, organizationID string) bool {
	return slices.ContainsFunc(r.bySlot[slot], func(id string) bool { return id != organizationID })
}

// Of returns for which organization a slot is; empty: for any.
func (r Residents) Of(slot int) string {
	if all := r.bySlot[slot]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// Slots are those on which anybody is.
func (r Residents) Slots() []int { return slices.Sorted(maps.Keys(r.bySlot)) }

// residing is of what Residents are found.
type residing struct {
	pool     capacity.Pool
	nodes    iter.Seq[*node.Node]
	all      iter.Seq[allocation.Allocation]
	cleaning []learned.Cleaning
	holders  func(allocationIDs []string) (map[string]string, error)
}

// find costs a look at each node, and no more where each of them keeps all apart.
func (r residing) find() (Residents, error) {
	mixing, ids := map[string]int{}, map[int]string{} // the slots of such nodes, and their ids
	for n := range r.nodes {
		if n.Isolation.Mixes(r.pool.Isolation) && !node.Machine.Terminal(n.State()) {
			mixing[n.ID], ids[n.Slot] = n.Slot, n.ID
		}
	}
	if len(mixing) == 0 {
		return Residents{}, nil
	}
	out := Residents{map[int][]string{}}
	first := map[int]allocation.Allocation{} // who has had GPUs of a slot for longest
	for a := range r.all {
		for _, slot := range a.Slots {
			if !a.Live() || a.Observed() || ids[slot] == "" {
				continue
			}
			if slices.Contains(a.Opened, ids[slot]) {
				out.bySlot[slot] = append(out.bySlot[slot], a.OrganizationID)
			}
			if was, known := first[slot]; !known || a.RequestedAt.Before(was.RequestedAt) {
				first[slot] = a
			}
		}
	}
	if err := r.addCleaning(out, mixing); err != nil {
		return out, err
	}
	for slot, a := range first {
		if len(out.bySlot[slot]) == 0 {
			out.bySlot[slot] = []string{a.OrganizationID}
		}
	}
	return out, nil
}

// addCleaning adds those of whom something may be left.
func (r residing) addCleaning(out Residents, mixing map[string]int) error {
	left := map[string][]int{} // slots, by allocation
	for _, c := range r.cleaning {
		for _, id := range slices.Concat(c.Await, c.GivenUp) {
			if slot, mixes := mixing[id]; mixes {
				left[c.ID] = append(left[c.ID], slot)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	holders, err := r.holders(SortedKeys(left))
	if err != nil {
		return err
	}
	for id, slots := range left {
		for _, slot := range slots {
			out.bySlot[slot] = append(out.bySlot[slot], holders[id])
		}
	}
	return nil
}

// ResidentsOf finds them in a pool that is locked.
func ResidentsOf(p *PoolTx) (Residents, error) {
	return residing{p.Pool.Pool, slices.Values(p.Nodes.Rows), p.Allocations.All(), p.Cleaning,
		func(ids []string) (map[string]string, error) {
			if err := ReadHolders(p.Tx, ids); err != nil {
				return nil, err
			}
			return p.Tx.holders, nil
		}}.find()
}

// ReadResidents finds them in a pool that was read.
func ReadResidents(r ledger.Reader, p ledger.PoolState) (Residents, error) {
	nodes := func(yield func(*node.Node) bool) {
		for i := range p.Nodes {
			if !yield(&p.Nodes[i]) {
				return
			}
		}
	}
	return residing{p.Pool.Pool, nodes, slices.Values(p.Allocations), p.Pool.Cleaning, r.Holders}.find()
}
