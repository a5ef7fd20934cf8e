package booking

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/observe"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// servedWork is work that has claimed promises: while it runs, other work of its
// organization on its nodes claims none.
type servedWork struct {
	organization string
	slots        []int
	from, until  time.Time // until is zero while it runs
}

// claimFor claims the promises that work came for on the warm nodes that it runs on for a
// time, which has no end yet while it does.
func (s *sight) claimFor(p *txn.PoolTx, a *allocation.Allocation, on []placed, ran calendar.Interval) error {
	var promises []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.OrganizationID == a.OrganizationID && r.Placed() {
			promises = append(promises, r)
		}
	}
	slots := s.unclaimedSlots(p, *a, on, ran.Start)
	lead := plan.Lead(p.Pool.AsPlanned(s.tx.Now()).Boot, s.tx.Config.Policy)
	start := observe.Start{OrganizationID: a.OrganizationID, At: ran.Start, Slots: slots, Nodes: len(slots)}
	claims := observe.Claims(promises, start, lead)
	for _, c := range claims {
		r, _ := p.FindReservation(c.ReservationID)
		id, err := claimSlots(s.tx, p, r, c.Slots, a.Work.Label())
		if err != nil {
			return err
		}
		a.Reservations = append(a.Reservations, id)
	}
	if s.out.Claims += len(claims); len(claims) > 0 {
		s.served = append(s.served, servedWork{a.OrganizationID, slots, ran.Start, ran.End})
	}
	return nil
}

// unclaimedSlots are the slots of nodes on which no other work of its organization has
// claimed a promise: many small jobs on one node are what one promise of a node was for.
func (s *sight) unclaimedSlots(p *txn.PoolTx, a allocation.Allocation, on []placed, at time.Time) []int {
	var slots []int
	for _, part := range on {
		if !slices.Contains(slots, part.node.Slot) {
			slots = append(slots, part.node.Slot)
		}
	}
	slices.Sort(slots)
	return slices.DeleteFunc(slots, func(slot int) bool {
		for other := range p.Allocations.All() {
			if other.ID != a.ID && other.Observed() && other.Live() && other.OrganizationID == a.OrganizationID &&
				len(other.Reservations) > 0 && slices.Contains(other.Slots, slot) {
				return true
			}
		}
		return slices.ContainsFunc(s.served, func(w servedWork) bool {
			return w.organization == a.OrganizationID && slices.Contains(w.slots, slot) && !at.Before(w.from) &&
				(w.until.IsZero() || at.Before(w.until))
		})
	})
}

// claimSlots claims a promise, or the part of it on some of its slots: that part becomes
// a promise of its own, which is over, and the rest waits for those who come later. It
// returns the id of what was claimed.
func claimSlots(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, slots []int, by string) (string, error) {
	message := fmt.Sprintf("claimed by %s, which the cluster placed", by)
	if len(slots) < len(r.Slots) {
		take := map[int]int{}
		for i, slot := range r.Slots {
			if slices.Contains(slots, slot) {
				take[slot] = r.Shape.On(i)
			}
		}
		rest, parts, _ := r.Carve(take, func() string { return tx.IDs.New(ids.Reservation) })
		for _, left := range rest {
			p.PutReservation(left)
		}
		message = fmt.Sprintf("%s, %s of %s", message, phrase.Count(len(slots), "node"), r.ID)
		r = parts[0]
	}
	_, err := tx.StepReservation(p, r, reservation.Claim, "claimed", message)
	return r.ID, err
}
