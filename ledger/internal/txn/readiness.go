package txn

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// readiness is how soon work on a slot could begin, the soonest first.
type readiness int

// How soon a slot can be used.
const (
	SlotReady readiness = iota
	slotComing
	slotEmpty
	slotLeaving // its node must go before another can be made
	readinessLevels
)

func readinessOf(n node.Node) readiness {
	switch {
	case n.State() == node.Ready:
		return SlotReady
	case n.Coming():
		return slotComing
	default:
		return slotLeaving
	}
}

// preference holds which slots stand how, so that the order in which a request
// prefers them need not be made for each.
type preference struct {
	n     int // slots of the pool; a node may stand beyond them when it shrank
	slots [readinessLevels]calendar.SlotSet
	soon  calendar.Tiers // for what begins soon: whatever is usable soonest
	later calendar.Tiers // for the rest: anything but a node on its way out
}

// newPreference returns that of n slots without nodes.
func newPreference(n int) preference {
	p := preference{n: n}
	for s := range p.slots {
		p.slots[s] = calendar.NewSlotSet(n)
	}
	for slot := range n {
		p.slots[slotEmpty].Add(slot)
	}
	return p
}

// setReadiness notes how a slot stands now.
func (p *preference) setReadiness(slot int, to readiness) {
	if slot >= p.n {
		return
	}
	for s := range p.slots {
		p.slots[s].Remove(slot)
	}
	p.slots[to].Add(slot)
	p.soon, p.later = nil, nil
}

// SlotTiers makes both orders. Their sets are copies: an order that was handed out
// stays what it was.
func (p *preference) SlotTiers() (soon, later calendar.Tiers) {
	if p.soon != nil {
		return p.soon, p.later
	}
	staying := p.slots[SlotReady].Clone()
	for s := range p.slots {
		p.soon = append(p.soon, p.slots[s].Clone())
		if readiness(s) == slotLeaving {
			continue
		}
		for slot := range p.slots[s].All() {
			staying.Add(slot)
		}
	}
	p.later = calendar.Tiers{staying, p.soon[slotLeaving]}
	return p.soon, p.later
}

// closeHeld excludes the slots whose node is on its way out and is held at a time: their free
// GPUs are nobody's before it is gone.
func closeHeld(p *PoolTx, tiers calendar.Tiers, at time.Time) calendar.Tiers {
	last := len(tiers) - 1 // those on their way out
	if tiers[last].Len() == 0 {
		return tiers
	}
	open := tiers[last].Clone()
	for a := range p.Allocations.All() {
		if !a.Holds() || !a.LeaseUntil.After(at) {
			continue
		}
		for _, slot := range a.Slots {
			open.Remove(slot)
		}
	}
	return append(slices.Clone(tiers[:last]), open)
}

// TiersFor orders slots for a window. One that starts within its lead time wants
// what is usable soonest; a later one only avoids slots whose node is on its way
// out, and both exclude those of which it is not gone by then.
func TiersFor(p *PoolTx, w calendar.Interval, now time.Time, policy plan.Policy) calendar.Tiers {
	soon, later := p.Preferred.SlotTiers()
	if !w.Start.After(now.Add(plan.Lead(p.Pool.AsPlanned(now).Boot, policy))) {
		return closeHeld(p, soon, w.Start)
	}
	return closeHeld(p, later, w.Start)
}

// TiersNow prefers the places of the tenant's own reservations, then whatever is usable
// soonest. The places of an explicit claim come before everything, others only
// where they are ready.
func TiersNow(p *PoolTx, own []reservation.Reservation, explicit bool) calendar.Tiers {
	soon, _ := p.Preferred.SlotTiers()
	mine := calendar.NewSlotSet(p.Pool.MaxNodes)
	for _, r := range own {
		for _, slot := range r.Slots {
			if slot < p.Pool.MaxNodes && (explicit || p.SlotReadiness(slot) == SlotReady) {
				mine.Add(slot)
			}
		}
	}
	return append(calendar.Tiers{mine}, closeHeld(p, soon, p.Tx.Now())...)
}

// SlotReadiness is how soon a slot can be used.
func (p *PoolTx) SlotReadiness(slot int) readiness {
	n, ok := p.NodeOnSlot(slot)
	if !ok {
		return slotEmpty
	}
	return readinessOf(n)
}
