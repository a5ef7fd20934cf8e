package booking

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// A job that claims a part of a reservation uses some of its time, and few jobs as much as they may. The rest stays
// reserved: it is a row of its own, which awaits the job's allocation, and begins once that has given its GPUs back.

// reserveAfter reserves what an allocation leaves of the time of a reservation, from the first of some instants from
// which there is room for it.
func reserveAfter(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, a allocation.Allocation, from ...time.Time) {
	for _, at := range from {
		later, any := r.After(usedBy(a), at, "", tx.Now())
		if !any || !p.Places.FitsAll(later.Booking()) {
			continue
		}
		later.ID = tx.IDs.New(ids.Reservation)
		later.Cost = admission.Cost(p.Pool.Pool, later.Shape, later.Window.Length())
		p.PutReservation(later)
		tx.AddEvent(ledger.Event{OrganizationID: later.OrganizationID, Type: "reservation." + string(later.State()),
			Subject: later.ID, PoolID: p.Pool.ID, Message: fmt.Sprintf("%s of %s from %s to %s, after job %s",
				phrase.Count(later.Shape.GPUs(), "GPU"), later.PartOf, ledger.FormatTimeSeen(later.Window.Start, tx.Now()),
				ledger.FormatTimeSeen(later.Window.End, tx.Now()), a.JobID)})
		return
	}
}

func usedBy(a allocation.Allocation) reservation.Used {
	return reservation.Used{By: a.ID, Shape: a.Shape, Slots: a.Slots}
}

// reserveRest has what an allocation leaves of the time of what its job claimed be reserved from an instant on. Before,
// it might have had its GPUs until was.
func reserveRest(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, was, from time.Time) error {
	if a.JobID == "" || len(a.Reservations) == 0 {
		return nil
	}
	for r := range p.Reservations.All() {
		if r.Awaits == a.ID && r.Live() {
			bringForward(tx, p, r, from)
			return nil
		}
	}
	r, err := readReservation(tx, p, a.Reservations[0])
	if err != nil || r.PartOf == "" { // it was claimed whole
		return err
	}
	if _, had := r.After(usedBy(a), was.Add(p.Places.Margin()), "", tx.Now()); had { // somebody has cancelled it
		return nil
	}
	whole, err := readReservation(tx, p, r.PartOf)
	if err == nil && whole.State() != reservation.Cancelled {
		reserveAfter(tx, p, r, a, from)
	}
	return err
}

// readReservation returns a reservation of the pool, as this transaction leaves it if it is live; the zero Reservation
// if there is none any more.
func readReservation(tx *txn.Tx, p *txn.PoolTx, id string) (reservation.Reservation, error) {
	if r, live := p.FindReservation(id); live {
		return r, nil
	}
	r, err := tx.Port.Reservation(ledger.Scope{All: true}, id)
	if ledger.IgnoreMissing(err) != nil {
		return r, fmt.Errorf("reading what a job claimed: %w", err)
	}
	return r, nil
}

// cleanFrom is from when the GPUs of an allocation that is over can be somebody else's, as far as that is known.
func cleanFrom(tx *txn.Tx, p *txn.PoolTx, allocationID string) time.Time {
	if c, dirty := cleaningOf(p, allocationID); dirty {
		return c.Booking().Interval.End.Add(p.Places.Margin())
	}
	return tx.Now()
}

func cleaningOf(p *txn.PoolTx, allocationID string) (learned.Cleaning, bool) {
	i := slices.IndexFunc(p.Cleaning, func(c learned.Cleaning) bool { return c.ID == allocationID })
	if i < 0 {
		return learned.Cleaning{}, false
	}
	return p.Cleaning[i], true
}

// BringForward has what is reserved after allocations begin now, where these are over and their GPUs clean.
func BringForward(tx *txn.Tx, p *txn.PoolTx) {
	var due []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.Awaits == "" || !r.Live() || !r.Window.Start.After(tx.Now()) {
			continue
		}
		a, found := p.FindAllocation(r.Awaits)
		if _, dirty := cleaningOf(p, r.Awaits); !dirty && (!found || !a.Live()) {
			due = append(due, r)
		}
	}
	for _, r := range due {
		bringForward(tx, p, r, tx.Now())
	}
}

// bringForward has a reservation begin at an instant, if it does not before and there is room for it.
func bringForward(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, from time.Time) {
	if !from.Before(r.Window.Start) {
		return
	}
	sooner := r
	sooner.Window.Start = from
	p.SetReservation(&r, nil)
	fits := p.Places.FitsAll(sooner.Booking())
	p.SetReservation(nil, &r)
	if fits {
		sooner.Cost = admission.Cost(p.Pool.Pool, sooner.Shape, sooner.Window.Length())
		p.PutReservation(sooner)
		tx.WakePlan(p.Pool.ID)
	}
}
