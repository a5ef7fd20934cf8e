package fleet

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// losePlaces lists the promises that a smaller pool would hurt, in the order of
// their starts: those that would have no place and have one now, which it asks of
// the planner, and those whose ready nodes would not be the pool's any more.
func losePlaces(tx *txn.Tx, p *txn.PoolTx, def capacity.Pool) ([]ledger.AtRisk, error) {
	if def.MaxNodes >= p.Pool.MaxNodes {
		return nil, nil
	}
	paused, err := tenancy.ReadPauses(tx)
	if err != nil {
		return nil, err
	}
	s := plannerSnapshot(p)
	s.Paused = paused.PausedUntil()
	before := plan.Foresee(s, tx.Config.Policy, tx.Now()).Homeless()
	s.Pool = def
	var lost []ledger.AtRisk
	for _, id := range plan.Foresee(s, tx.Config.Policy, tx.Now()).Homeless() {
		if !slices.Contains(before, id) {
			lost = append(lost, lostPromise(p, id, def, "no place for it"))
		}
	}
	for r := range p.Reservations.All() {
		named := slices.ContainsFunc(lost, func(x ledger.AtRisk) bool { return x.ID == r.ID })
		if !named && r.State() == reservation.Ready &&
			slices.ContainsFunc(r.Slots, func(slot int) bool { return slot >= def.MaxNodes }) {
			lost = append(lost, lostPromise(p, r.ID, def, "no ready nodes for it"))
		}
	}
	slices.SortStableFunc(lost, func(a, b ledger.AtRisk) int { return a.Window.Start.Compare(b.Window.Start) })
	return lost, nil
}

// lostPromise is a promise that a smaller pool hurts, by what that pool would not have.
func lostPromise(p *txn.PoolTx, id string, def capacity.Pool, lacks string) ledger.AtRisk {
	why := func(s capacity.Shape, w calendar.Interval) []admission.Reason {
		return []admission.Reason{{Code: admission.CapacityExhausted, Unit: "gpus",
			Limit: int64(def.MaxNodes * def.PerNode), Asked: int64(s.GPUs()), At: w.Start,
			Message: fmt.Sprintf("pool %s would have %s of %s, and %s", def.Name, phrase.Count(def.MaxNodes, "node"),
				phrase.Count(def.PerNode, "GPU"), lacks)}}
	}
	if r, ok := p.FindReservation(id); ok {
		return ledger.AtRisk{ID: id, OrganizationID: r.OrganizationID, PoolID: def.ID, Shape: r.Shape, Window: r.Window,
			Lost: why(r.Shape, r.Window)}
	}
	a, _ := p.FindAllocation(id)
	return ledger.AtRisk{ID: id, OrganizationID: a.OrganizationID, PoolID: def.ID, Shape: a.Shape, Window: a.Window,
		Lost: why(a.Shape, a.Window)}
}

// degradeLost flags the reservations that have no place any more, as the planner
// would. It heals them when they have one again. Whether one that was ready is late
// on other nodes is the planner's to find.
func degradeLost(tx *txn.Tx, p *txn.PoolTx, lost []ledger.AtRisk) {
	for _, x := range lost {
		r, ok := p.FindReservation(x.ID)
		if !ok || r.Degraded || r.State() == reservation.Ready {
			continue
		}
		r.Degraded, r.Reason = true, plan.ReasonShrunk
		p.PutReservation(r)
		tx.AddEvent(ledger.Event{OrganizationID: r.OrganizationID, Type: "reservation.degraded", Subject: r.ID,
			PoolID:  p.Pool.ID,
			Reason:  plan.ReasonShrunk,
			Message: fmt.Sprintf("%s was made smaller, and has no place for it now", p.Pool.Name)})
	}
}
