package learned

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// CleanWithin is how long the daemon of a node may take to prove that nothing of a holder
// is left there. After it, the node is taken out of use.
const CleanWithin = 2 * time.Minute

// Cleaning is GPUs that were given back and are kept free while they are cleaned.
type Cleaning struct {
	ID    string    // of the allocation
	Since time.Time // when it gave them back
	Slots []int
	GPUs  int      // on each slot
	Short int      // fewer on the last of them
	UUIDs []string // of the devices
	// Await are the nodes where the holder's work ran, and whose daemon has not proved yet
	// that nothing of it is left. Nothing is clean before that, however long it takes.
	Await []string
	// GivenUp are those of whom no proof came in time: they are out of use, and prove it still
	// before their GPUs are anybody's.
	GivenUp []string `json:",omitempty"`
}

// Booking is the entry in the pool's calendar: it ends with the allocation, or when a proof
// is due, and the calendar's margin is the cleaning.
func (c Cleaning) Booking() calendar.Booking {
	end := c.Since
	if len(c.Await) > 0 {
		end = c.Overdue()
	}
	return calendar.Booking{ID: "cleaning of " + c.ID, Slots: c.Slots, GPUs: c.GPUs, Short: c.Short,
		Interval: calendar.Interval{Start: c.Since.Add(-time.Second), End: end}}
}

// Occupies makes what is being cleaned a calendar.Occupant.
func (c Cleaning) Occupies(int) (calendar.Booking, bool) { return c.Booking(), true }

// Overdue is when the proofs that are awaited are too late.
func (c Cleaning) Overdue() time.Time { return c.Since.Add(CleanWithin) }

// Awaits reports whether the daemon of a node has to prove that it is clean, and may still
// do so in time.
func (c Cleaning) Awaits(nodeID string) bool { return slices.Contains(c.Await, nodeID) }

// Doubts reports whether the daemon of a node has to prove that it is clean, in time or not.
func (c Cleaning) Doubts(nodeID string) bool {
	return c.Awaits(nodeID) || slices.Contains(c.GivenUp, nodeID)
}

// Proved returns the cleaning once there is no doubt about a node any more. The receiver is
// not changed.
func (c Cleaning) Proved(nodeID string) Cleaning {
	c.Await, c.GivenUp = without(c.Await, nodeID), without(c.GivenUp, nodeID)
	return c
}

// GiveUp returns the cleaning once the proof of a node is too late. The receiver is not
// changed.
func (c Cleaning) GiveUp(nodeID string) Cleaning {
	c.Await, c.GivenUp = without(c.Await, nodeID), append(slices.Clone(c.GivenUp), nodeID)
	return c
}

// Resume returns the cleaning once a node that was given up is to be used again: from now on
// its proof is awaited anew. The receiver is not changed.
func (c Cleaning) Resume(nodeID string, now time.Time) Cleaning {
	c.GivenUp, c.Await, c.Since = without(c.GivenUp, nodeID), append(slices.Clone(c.Await), nodeID), now
	return c
}

func without(ids []string, gone string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == gone })
}

// Next is when something is due, where cleaning takes so long.
func (c Cleaning) Next(takes time.Duration) time.Time {
	if len(c.Await) > 0 {
		return c.Overdue()
	}
	return c.Since.Add(takes)
}

// Cleaned parts what is being cleaned into what still is at now, where that takes
// so long, and what is clean.
func Cleaned(all []Cleaning, takes time.Duration, now time.Time) (dirty, clean []Cleaning) {
	for _, c := range all {
		if len(c.Await)+len(c.GivenUp) > 0 || c.Since.Add(takes).After(now) {
			dirty = append(dirty, c)
		} else {
			clean = append(clean, c)
		}
	}
	return slices.Clip(dirty), clean
}
