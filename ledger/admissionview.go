package ledger

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
)

// speculativeBookings lists the bookings that give way, without the shares of their
// holders, which change with the clock: see ranked. The list is kept until one of
// them changes.
func (d *cachedPool) speculativeBookings() []admission.Speculative {
	if d.guesses == nil {
		d.guesses = []admission.Speculative{}
		for r := range d.reservations.allRows() {
			if r.Placed() && r.Class == reservation.Speculative {
				d.guesses = append(d.guesses, admission.Speculative{Booking: r.Booking(), Probability: r.Probability})
			}
		}
	}
	return d.guesses
}

// refuseTooLate refuses a guess that would be over before its nodes are likely to be
// up: it could only cost.
func refuseTooLate(p *poolTx, slots []int, w calendar.Interval, now time.Time) []admission.Reason {
	boot := p.Pool.asPlanned(now).Boot.P50()
	usable := now
	for _, slot := range slots {
		due := now
		if n, ok := p.nodeOnSlot(slot); ok && n.Coming() {
			due = n.RequestedAt.Add(boot)
		} else if p.slotReadiness(slot) != standingReady {
			due = now.Add(boot)
		}
		if due.After(usable) {
			usable = due
		}
	}
	if usable.Before(w.End) {
		return nil
	}
	return []admission.Reason{{
		Code: admission.LeadTimeTooShort, Unit: "seconds", Limit: int64(boot / time.Second),
		Asked: int64(w.End.Sub(now) / time.Second),
		Message: fmt.Sprintf("the window ends in %s, and a node of pool %s takes %s to boot", phrase.Span(w.End.Sub(now)),
			p.Pool.Name, phrase.Span(boot)),
	}}
}

// admissionView gathers what admission looks at for one organization in one pool.
func admissionView(tx *groupTx, p *poolTx, h *holding, tiers calendar.Tiers) admission.View {
	c := h.commitments
	v := admission.View{
		Now: tx.now(), PoolView: admission.PoolView{Pool: p.Pool.Pool, Slots: p.places, Tiers: tiers,
			Speculative: p.speculativeBookings(), Used: p.split},
		Limits: h.org.Limits, Committed: &c.All, SpeculativeCommitments: &c.Speculative, Cohort: h.cohort,
		Brief: tx.onlyCounts(),
	}
	h.addCaps(&v)
	v.Pause = h.pause
	return v
}

// displaceReservations cancels the speculative reservations that a decision pushes out.
func displaceReservations(tx *groupTx, p *poolTx, ids []string, by verdict) error {
	for _, id := range ids {
		r, ok := p.findReservation(id)
		if !ok {
			continue
		}
		message := "gave way to a request that outranks it"
		if _, err := tx.stepReservation(p, r, reservation.Cancel, "displaced", message); err != nil {
			return err
		}
		tx.attachDecision(by.decisionRecord(DecisionDisplacement))
		if r.OrganizationID != tx.actor.OrganizationID { // who took the place is not its owner's to know
			tx.change.Events[len(tx.change.Events)-1].Actor = SystemActor("").KeyID
		}
		markIdle(tx, p, r.Slots)
	}
	return nil
}

// markIdle notes that work on the slots ended now, from which idleness counts.
func markIdle(tx *groupTx, p *poolTx, slots []int) {
	for _, slot := range slots {
		if n, ok := p.nodeOnSlot(slot); ok && n.State() == node.Ready {
			n.IdleSince = tx.now()
			p.putNode(n)
		}
	}
}

// freeDevices picks the allocation's devices on its slots, or reports that a node is
// not ready or not empty enough.
func freeDevices(p *poolTx, a allocation.Allocation) ([]allocation.Held, bool) {
	var held []allocation.Held
	for i, slot := range a.Slots {
		n, ok := p.nodeOnSlot(slot)
		if !ok || n.State() != node.Ready {
			return nil, false
		}
		left := a.Shape.On(i)
		for _, d := range n.Devices {
			if left > 0 && p.taken[d.UUID] == "" && !p.isDirty(d.UUID) {
				held = append(held, allocation.Held{NodeID: n.ID, UUID: d.UUID})
				left--
			}
		}
		if left > 0 {
			return nil, false
		}
	}
	return held, true
}

// heldCost is what a reservation that is over really held.
func heldCost(p Pool, r reservation.Reservation, now time.Time) money.MicroUSD {
	if r.WarmedAt.IsZero() {
		return 0
	}
	return admission.Cost(p.Pool, r.Shape, now.Sub(r.WarmedAt))
}

// leaseCost is what a lease costs that is held from its activation to its end,
// at the pool's price.
func leaseCost(p Pool, a allocation.Allocation) money.MicroUSD {
	return admission.Cost(p.Pool, a.Shape, a.LeaseUntil.Sub(a.ActiveAt))
}

// heldUntilEnd is what an allocation that is over really held.
func heldUntilEnd(p Pool, a allocation.Allocation) money.MicroUSD {
	if a.ActiveAt.IsZero() {
		return 0
	}
	return admission.Cost(p.Pool, a.Shape, a.EndedAt.Sub(a.ActiveAt))
}
