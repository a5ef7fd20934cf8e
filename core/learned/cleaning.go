package learned

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Cleaning is GPUs that were given back and are kept free while they are cleaned.
type Cleaning struct {
	ID    string    // of the allocation
	Since time.Time // when it gave them back
	Slots []int
	GPUs  int      // on each slot
	Short int      // fewer on the last of them
	UUIDs []string // of the devices
}

// Booking is the entry in the pool's calendar: it ends with the allocation, and the
// calendar's margin is the cleaning.
func (c Cleaning) Booking() calendar.Booking {
	return calendar.Booking{ID: "cleaning of " + c.ID, Slots: c.Slots, GPUs: c.GPUs, Short: c.Short,
		Interval: calendar.Interval{Start: c.Since.Add(-time.Second), End: c.Since}}
}

// Occupies makes what is being cleaned a calendar.Occupant.
func (c Cleaning) Occupies(int) (calendar.Booking, bool) { return c.Booking(), true }

// Cleaned parts what is being cleaned into what still is at now, where that takes
// so long, and what is clean.
func Cleaned(all []Cleaning, takes time.Duration, now time.Time) (dirty, clean []Cleaning) {
	for _, c := range all {
		if c.Since.Add(takes).After(now) {
			dirty = append(dirty, c)
		} else {
			clean = append(clean, c)
		}
	}
	return slices.Clip(dirty), clean
}
