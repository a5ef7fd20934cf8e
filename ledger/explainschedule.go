package ledger

import (
	"github.com/forewarm/forewarm/core/reservation"
)

// DescribeDate tells in a few words what became of a date.
func (d ScheduleDate) DescribeDate() string {
	switch d.State {
	case DateComing:
		return "not asked for yet"
	case DatePaused:
		return "not asked for while the schedule is paused"
	case DateMissed:
		return "never asked for"
	case DateRefused:
		return "refused: " + d.Message
	case string(reservation.Waitlisted):
		return d.ReservationID + " waits for a place"
	default:
		return d.ReservationID + " is " + d.State
	}
}
