package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// What may have become of a schedule's date that has no reservation. One that
// has is in the reservation's state.
const (
	DateComing  = "coming"  // it is not asked for yet
	DatePaused  = "paused"  // it will not be asked for unless the schedule is resumed
	DateRefused = "refused" // it was asked for and got nothing
	DateMissed  = "missed"  // it was never asked for, and is not any more
)

// ScheduleDate is one date of a schedule, and what became of it.
type ScheduleDate struct {
	recurrence.Occurrence
	State         string // of its reservation, or one of the Date constants
	ReservationID string // empty: it has none
	Degraded      bool
	Cost          money.MicroUSD // of its reservation
	Reason        string         // a code; may be empty
	Message       string         // for people; may be empty
	AskedAt       time.Time      // about when it is asked for; zero: it was, or never is
}

// BookedDate is a date of the schedule that has a reservation.
func (s Schedule) BookedDate(o recurrence.Occurrence, r reservation.Reservation) ScheduleDate {
	return ScheduleDate{Occurrence: o, State: string(r.State()), ReservationID: r.ID, Degraded: r.Degraded,
		Cost: r.Cost, Reason: r.Reason}
}

// LaterDate is a date of the schedule that is booked later, once it is near
// enough.
func (s Schedule) LaterDate(o recurrence.Occurrence, ahead time.Duration) ScheduleDate {
	return ScheduleDate{Occurrence: o, State: DateComing, AskedAt: o.Start.Add(-ahead)}
}
