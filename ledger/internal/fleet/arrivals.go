package fleet

import (
	"time"

	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// learnArrivals lets the pool learn when people come without having reserved. Only a
// start, or an hour that is over, is worth a write. Who came and went between two
// plans is not seen: every start has the pool planned.
func learnArrivals(tx *txn.Tx, p *txn.PoolTx) {
	seen := p.Pool.Arrivals.Until
	var starts []plan.Start
	for a := range p.Allocations.All() {
		if len(a.Reservations) == 0 && a.RequestedAt.After(seen) {
			starts = append(starts, plan.Start{At: a.RequestedAt,
				Nodes: float64(a.Shape.GPUs()) / float64(max(1, p.Pool.PerNode))})
		}
	}
	if len(starts) == 0 && tx.Now().Truncate(time.Hour).Equal(seen.Truncate(time.Hour)) {
		return
	}
	next := p.Pool
	next.Arrivals = next.Arrivals.Observe(starts, tx.Now())
	p.PutPool(next)
}
