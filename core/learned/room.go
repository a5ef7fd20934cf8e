package learned

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Room is GPUs that jobs leave for another one: until that has begun, or has given them up, nobody
// else is given them. It is not learned, but kept with what is.
type Room struct {
	For    string // the job
	Since  time.Time
	GiveUp time.Time // when the job has not begun by then, everybody may have them
	Until  time.Time // when the job would end at the latest
	Slots  []int
	GPUs   int      // on each slot
	Short  int      // fewer on the last of them
	From   []string // the allocations that leave
}

// Booking is the entry in the pool's calendar.
func (r Room) Booking() calendar.Booking {
	return calendar.Booking{ID: "room for " + r.For, Slots: r.Slots, GPUs: r.GPUs, Short: r.Short,
		Interval: calendar.Interval{Start: r.Since, End: r.Until}}
}

// Occupies makes a room a calendar.Occupant.
func (r Room) Occupies(int) (calendar.Booking, bool) { return r.Booking(), true }
