package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// AheadFor is how far ahead an actor's dates are booked: no further than its caps
// allow, or each date would be asked for too early, refused, and never asked for
// again.
func (c Config) AheadFor(actor Actor) time.Duration {
	ahead := c.Ahead
	for _, bound := range actor.Makers {
		ahead = min(ahead, bound.Caps.MaxLead)
	}
	return ahead
}

// ReserveRequest asks for one date of a schedule. Its id is derived, so that the date is
// booked once.
func (s Schedule) ReserveRequest(o recurrence.Occurrence) ReserveRequest {
	return ReserveRequest{
		Pool: s.PoolID, GPUs: s.GPUs, Layout: s.Layout, Window: calendar.Interval{Start: o.Start, End: o.End},
		Name: s.Name + " " + o.Date, Queue: true,
		ID: s.ReservationID(o), Origin: reservation.FromSchedule, MadeBy: s.ID,
	}
}

// ReservationID is the id of the reservation for one date, the same however
// often it is booked.
func (s Schedule) ReservationID(o recurrence.Occurrence) string {
	return ids.Derived(ids.Reservation, s.ID, o.Date)
}
