package txn

import (
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// SpeculativeBookings lists the bookings that give way, without the shares of their
// holders, which change with the clock: see ranked. The list is kept until one of
// them changes.
func (d *cachedPool) SpeculativeBookings() []admission.Speculative {
	if d.speculative == nil {
		d.speculative = []admission.Speculative{}
		for r := range d.Reservations.All() {
			if r.Placed() && r.Class == reservation.Speculative {
				d.speculative = append(d.speculative,
					admission.Speculative{Booking: r.Booking(), Probability: r.Probability})
			}
		}
	}
	return d.speculative
}

// heldCost is what a reservation that is over really held.
func heldCost(p ledger.Pool, r reservation.Reservation, now time.Time) money.MicroUSD {
	if r.WarmedAt.IsZero() {
		return 0
	}
	return admission.Cost(p.Pool, r.Shape, now.Sub(r.WarmedAt))
}

// LeaseCost is what a lease costs that is held from its activation to its end,
// at the pool's price.
func LeaseCost(p ledger.Pool, a allocation.Allocation) money.MicroUSD {
	return admission.Cost(p.Pool, a.Shape, a.LeaseUntil.Sub(a.ActiveAt))
}

// heldUntilEnd is what an allocation that is over really held.
func heldUntilEnd(p ledger.Pool, a allocation.Allocation) money.MicroUSD {
	if a.ActiveAt.IsZero() {
		return 0
	}
	return admission.Cost(p.Pool, a.Shape, a.EndedAt.Sub(a.ActiveAt))
}
