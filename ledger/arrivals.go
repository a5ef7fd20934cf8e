package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/plan"
)

// learnArrivals lets the pool learn when people come without having reserved. Only a
// start, or an hour that is over, is worth a write. Who came and went between two
// plans is not seen: every start has the pool planned.
func learnArrivals(tx *groupTx, p *poolTx) {
	seen := p.Pool.Arrivals.Until
	var starts []plan.Start
	for a := range p.allocations.allRows() {
		if len(a.Reservations) == 0 && a.RequestedAt.After(seen) {
			starts = append(starts, plan.Start{At: a.RequestedAt,
				Nodes: float64(a.Shape.GPUs()) / float64(max(1, p.Pool.PerNode))})
		}
	}
	if len(starts) == 0 && tx.now().Truncate(time.Hour).Equal(seen.Truncate(time.Hour)) {
		return
	}
	next := p.Pool
	next.Arrivals = next.Arrivals.Observe(starts, tx.now())
	p.putPool(next)
}

// pausedUntil is until when each organization's pre-warming is paused, as the planner
// takes it.
func (p pauses) pausedUntil() map[string]time.Time {
	until := make(map[string]time.Time, len(p))
	for organization, pause := range p {
		until[organization] = pause.Until
	}
	return until
}
