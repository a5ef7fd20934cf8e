package booking

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/observe"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// claimForWork claims the promises that work came for, and returns how many.
func claimForWork(tx *txn.Tx, p *txn.PoolTx, a *allocation.Allocation, started time.Time) (int, error) {
	var promises []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.OrganizationID == a.OrganizationID && r.Placed() {
			promises = append(promises, r)
		}
	}
	lead := plan.Lead(p.Pool.AsPlanned(tx.Now()).Boot, tx.Config.Policy)
	slots := unclaimedSlots(p, *a)
	start := observe.Start{OrganizationID: a.OrganizationID, At: started, Slots: slots, Nodes: len(slots)}
	claims := observe.Claims(promises, start, lead)
	for _, c := range claims {
		r, _ := p.FindReservation(c.ReservationID)
		id, err := claimSlots(tx, p, r, c.Slots, a.Work.Label())
		if err != nil {
			return 0, err
		}
		a.Reservations = append(a.Reservations, id)
	}
	return len(claims), nil
}

// unclaimedSlots are the slots of work on which no other work of its organization has claimed
// a promise: many small jobs on one node are what one promise of a node was for.
func unclaimedSlots(p *txn.PoolTx, a allocation.Allocation) []int {
	return slices.DeleteFunc(slices.Clone(a.Slots), func(slot int) bool {
		for other := range p.Allocations.All() {
			if other.ID != a.ID && other.Observed() && other.Live() && other.OrganizationID == a.OrganizationID &&
				len(other.Reservations) > 0 && slices.Contains(other.Slots, slot) {
				return true
			}
		}
		return false
	})
}

// claimSlots claims a promise, or the part of it on some of its slots: that part becomes
// a promise of its own, which is over, and the rest waits for those who come later. It
// returns the id of what was claimed.
func claimSlots(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, slots []int, by string) (string, error) {
	message := fmt.Sprintf("claimed by %s, which the cluster placed", by)
	if len(slots) < len(r.Slots) {
		rest, part := r.Split(slots, tx.IDs.New(ids.Reservation))
		p.PutReservation(rest)
		message = fmt.Sprintf("%s, %s of %s", message, phrase.Count(len(slots), "node"), r.ID)
		r = part
	}
	_, err := tx.StepReservation(p, r, reservation.Claim, "claimed", message)
	return r.ID, err
}
