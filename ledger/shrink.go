package ledger

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// losePlaces lists the promises that would have no place in a smaller pool and
// have one now, in the order of their starts. It asks the planner, which would
// flag exactly those.
func (u *unit) losePlaces(p *poolUnit, def gpu.Pool) ([]AtRisk, error) {
	if def.MaxNodes >= p.Pool.MaxNodes {
		return nil, nil
	}
	paused, err := u.pauses()
	if err != nil {
		return nil, err
	}
	s := p.snapshot()
	s.Paused = paused.until()
	before := plan.Foresee(s, u.cfg.Policy, u.now()).Homeless()
	s.Pool = def
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n node.Node) bool { return n.Slot >= def.MaxNodes && !p.serves(n) })
	var lost []AtRisk
	for _, id := range plan.Foresee(s, u.cfg.Policy, u.now()).Homeless() {
		if !slices.Contains(before, id) {
			lost = append(lost, p.lost(id, def))
		}
	}
	slices.SortStableFunc(lost, func(a, b AtRisk) int { return a.Window.Start.Compare(b.Window.Start) })
	return lost, nil
}

// serves reports whether somebody uses a node now. One that nobody uses goes, when
// its slot is not the pool's any more.
func (p *poolUnit) serves(n node.Node) bool {
	for a := range p.allocations.all() {
		if a.State() == allocation.Active && slices.Contains(a.Slots, n.Slot) {
			return true
		}
	}
	for r := range p.reservations.all() {
		if s := r.State(); (s == reservation.Ready || s == reservation.Warming) && slices.Contains(r.Slots, n.Slot) {
			return true
		}
	}
	return false
}

func (p *poolUnit) lost(id string, def gpu.Pool) AtRisk {
	why := func(s gpu.Shape, w calendar.Interval) []admission.Reason {
		return []admission.Reason{{Code: admission.CapacityExhausted, Unit: "gpus", Limit: int64(def.MaxNodes * def.PerNode), Asked: int64(s.GPUs()), At: w.Start,
			Message: fmt.Sprintf("pool %s would have %d nodes of %d GPUs, and no place for it", def.Name, def.MaxNodes, def.PerNode)}}
	}
	if r, ok := p.reservation(id); ok {
		return AtRisk{ID: id, OrganizationID: r.OrganizationID, PoolID: def.ID, Shape: r.Shape, Window: r.Window, Lost: why(r.Shape, r.Window)}
	}
	a, _ := p.allocation(id)
	return AtRisk{ID: id, OrganizationID: a.OrganizationID, PoolID: def.ID, Shape: a.Shape, Window: a.Window, Lost: why(a.Shape, a.Window)}
}

// degradeLost flags the reservations that have no place any more, as the planner
// would. It heals them when they have one again.
func (u *unit) degradeLost(p *poolUnit, lost []AtRisk) {
	for _, x := range lost {
		r, ok := p.reservation(x.ID)
		if !ok || r.Degraded {
			continue
		}
		r.Degraded, r.Reason = true, plan.ReasonShrunk
		p.putReservation(r)
		u.event(Event{OrganizationID: r.OrganizationID, Type: "reservation.degraded", Subject: r.ID, PoolID: p.Pool.ID, Reason: plan.ReasonShrunk,
			Message: fmt.Sprintf("%s was made smaller, and has no place for it now", p.Pool.Name)})
	}
}
