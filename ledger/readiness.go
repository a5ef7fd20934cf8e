package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// readiness is how soon work on a slot could begin, the soonest first.
type readiness int

const (
	standingReady readiness = iota
	standingComing
	standingEmpty
	standingLeaving // its node must go before another can be made
	standings
)

func readinessOf(n node.Node) readiness {
	switch {
	case n.State() == node.Ready:
		return standingReady
	case n.Coming():
		return standingComing
	default:
		return standingLeaving
	}
}

// preference holds which slots stand how, so that the order in which a request
// prefers them need not be made for each.
type preference struct {
	n     int // slots of the pool; a node may stand beyond them when it shrank
	slots [standings]calendar.SlotSet
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
		p.slots[standingEmpty].Add(slot)
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

// slotTiers makes both orders. Their sets are copies: an order that was handed out
// stays what it was.
func (p *preference) slotTiers() (soon, later calendar.Tiers) {
	if p.soon != nil {
		return p.soon, p.later
	}
	staying := p.slots[standingReady].Clone()
	for s := range p.slots {
		p.soon = append(p.soon, p.slots[s].Clone())
		if readiness(s) == standingLeaving {
			continue
		}
		for slot := range p.slots[s].All() {
			staying.Add(slot)
		}
	}
	p.later = calendar.Tiers{staying, p.soon[standingLeaving]}
	return p.soon, p.later
}

// tiersFor orders slots for a window. One that starts within its lead time wants
// what is usable soonest; a later one only avoids slots whose node is on its way
// out.
func tiersFor(p *poolTx, w calendar.Interval, now time.Time, policy plan.Policy) calendar.Tiers {
	soon, later := p.preferred.slotTiers()
	if !w.Start.After(now.Add(plan.Lead(p.Pool.asPlanned(now).Boot, policy))) {
		return soon
	}
	return later
}

// tiersNow prefers the places of the own reservations, then whatever is usable
// soonest. The places of an explicit claim come before everything, others only
// where they are ready.
func tiersNow(p *poolTx, own []reservation.Reservation, explicit bool) calendar.Tiers {
	soon, _ := p.preferred.slotTiers()
	mine := calendar.NewSlotSet(p.Pool.MaxNodes)
	for _, r := range own {
		for _, slot := range r.Slots {
			if slot < p.Pool.MaxNodes && (explicit || p.slotReadiness(slot) == standingReady) {
				mine.Add(slot)
			}
		}
	}
	return append(calendar.Tiers{mine}, soon...)
}

// onlyOn excludes every slot but these.
func onlyOn(slots []int) calendar.Tiers {
	var set calendar.SlotSet
	for _, slot := range slots {
		set.Add(slot)
	}
	return calendar.Tiers{set}
}

func (p *poolTx) slotReadiness(slot int) readiness {
	n, ok := p.nodeOnSlot(slot)
	if !ok {
		return standingEmpty
	}
	return readinessOf(n)
}
