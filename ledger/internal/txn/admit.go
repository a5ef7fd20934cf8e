package txn

import (
	"github.com/forewarm/forewarm/core/reservation"
)

// LeavesCalendar reports whether the verdict accepts the request into the calendar as
// it is.
func (v Verdict) LeavesCalendar() bool { return v.Accepted() && len(v.Displaced) == 0 }

// MakesRoom reports whether room was made among bookings that give way. Whether
// that helps does not depend on their order, and so not on their shares.
func (v Verdict) MakesRoom() bool { return len(v.facts.Room.Candidates) > 0 }

// MovableBookings lists the bookings that may be given other slots: those for which
// nothing has been warmed. The list is kept until a booking changes.
func (d *cachedPool) MovableBookings() []string {
	if d.mobile == nil {
		d.mobile = []string{}
		for _, r := range d.Reservations.Rows {
			if r.State() == reservation.Booked {
				d.mobile = append(d.mobile, r.ID)
			}
		}
	}
	return d.mobile
}
