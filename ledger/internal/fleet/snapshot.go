package fleet

import (
	"slices"
	"sync"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// plannerSnapshot is the pool as the planner sees it, for whoever needs it once.
func plannerSnapshot(p *txn.PoolTx) plan.Snapshot {
	var s plan.Snapshot
	fillSnapshot(&s, p)
	return s
}

// usedSnapshots are snapshots for their memory. A pool of ten thousand bookings is some
// megabytes, which would be new, and thrown away, for each plan.
var usedSnapshots = sync.Pool{New: func() any { return &plan.Snapshot{} }}

// borrowSnapshot returns a snapshot to be filled. When it is done with, nothing may refer
// to its lists any more: what a plan decides holds copies. The rows stay in the lists until the
// next plan or the garbage collector, which empties the pool: wiping megabytes would take as
// long as filling them, while the ledger's pool is locked.
func borrowSnapshot() (s *plan.Snapshot, done func()) {
	s, ok := usedSnapshots.Get().(*plan.Snapshot)
	if !ok {
		s = &plan.Snapshot{}
	}
	return s, func() {
		usedSnapshots.Put(&plan.Snapshot{Nodes: s.Nodes[:0], Reservations: s.Reservations[:0],
			Allocations: s.Allocations[:0]})
	}
}

// fillSnapshot makes s the pool as the planner sees it, without what ended in this
// transaction.
func fillSnapshot(s *plan.Snapshot, p *txn.PoolTx) {
	nodes, reservations, allocations := s.Nodes[:0], s.Reservations[:0], s.Allocations[:0]
	*s = ledger.PoolState{Pool: p.Pool}.Snapshot()
	if len(p.Pool.Alternates) > 0 {
		_, s.Learned = chooseOffering(p, node.Node{Slot: -1}, p.Tx.Now())
	}
	s.Slots = p.Places
	for _, n := range p.Nodes.Rows {
		if !node.Machine.Terminal(n.State()) {
			nodes = append(nodes, *n)
		}
	}
	reservations = slices.Grow(reservations, len(p.Reservations.Rows))
	for _, r := range p.Reservations.Rows {
		if r.Live() {
			reservations = append(reservations, *r)
		}
	}
	for _, a := range p.Allocations.Rows {
		if a.Live() {
			allocations = append(allocations, *a)
		}
	}
	s.Nodes, s.Reservations, s.Allocations = nodes, reservations, allocations
}
