package plan

import (
	"slices"
	"sort"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/reservation"
)

// Waiting gathers what an allocation or reservation of the pool waits for, for
// Wait; false when it does not wait: it is over, in use or ready, or its time has
// not come. A snapshot without Slots has the calendar built for it.
func Waiting(s Snapshot, p Policy, id string, now time.Time) (WaitFacts, bool) {
	c := newComputation(s, p.WithDefaults(), now)
	defer c.places.restore()
	for _, a := range c.byAge {
		if a.ID == id {
			return c.nodesFor(a.Slots), a.State() == allocation.Pending
		}
	}
	i := slices.IndexFunc(s.Reservations, func(r reservation.Reservation) bool { return r.ID == id })
	if i < 0 {
		return WaitFacts{}, false
	}
	switch r := &s.Reservations[i]; {
	case !r.Window.End.After(now):
		return WaitFacts{}, false
	case r.State() == reservation.Waitlisted:
		f, ok := c.placeFor(r.Shape, r.Window)
		return f, ok
	case r.State() == reservation.Warming, r.State() == reservation.Booked && r.Degraded:
		return c.nodesFor(r.Slots), true
	default:
		return WaitFacts{}, false
	}
}

// nodesFor is the wait for the nodes of slots that somebody has.
func (c *computation) nodesFor(slots []int) WaitFacts {
	f := WaitFacts{Boot: c.Boot, Leases: c.Leases}
	for _, slot := range slots {
		switch c.slotStanding(slot) {
		case ready:
		case coming:
			f.Ages = append(f.Ages, c.now.Sub(c.bySlot[slot].RequestedAt))
		default:
			f.Missing++
		}
	}
	if f.Missing > 0 {
		f.Blocked = max(0, c.Supply.BlockedUntil.Sub(c.now))
	}
	return f
}

// placeFor is the wait for a place during a window: until the first end of a
// booking from which on the rest of the window has one. The rest only gets
// shorter, so that halving finds it. False when there is none before the window
// ends, so that only somebody's change of mind can help.
func (c *computation) placeFor(shape gpu.Shape, window calendar.Interval) (WaitFacts, bool) {
	ends := c.endsIn(window)
	i := sort.Search(len(ends), func(i int) bool {
		_, ok := c.find(shape, window.From(ends[i]), nil)
		return ok
	})
	if i == len(ends) {
		return WaitFacts{}, false
	}
	slots, _ := c.find(shape, window.From(ends[i]), nil)
	f := c.nodesFor(slots)
	f.Room = ends[i].Sub(c.now)
	f.Holds = c.holds(slots, calendar.Interval{Start: c.now, End: ends[i]})
	return f, true
}

// endsIn are now and the ends of bookings until a window is over, in order, with
// the time that is needed to clean up.
func (c *computation) endsIn(window calendar.Interval) []time.Time {
	ends := []time.Time{c.now}
	note := func(end time.Time) {
		if end = end.Add(c.places.Margin()); end.After(c.now) && end.Before(window.End) {
			ends = append(ends, end)
		}
	}
	for i := range c.Reservations {
		if r := &c.Reservations[i]; r.Placed() {
			note(r.Window.End)
		}
	}
	for _, a := range c.byAge {
		note(a.Window.End)
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends
}

// holds are the leases on the slots that run now and end before iv does.
func (c *computation) holds(slots []int, iv calendar.Interval) []Hold {
	var holds []Hold
	for _, a := range c.byAge {
		if a.State() != allocation.Active || !a.Window.Overlaps(iv) {
			continue
		}
		if slices.ContainsFunc(a.Slots, func(slot int) bool { return slices.Contains(slots, slot) }) {
			holds = append(holds, Hold{Age: c.now.Sub(a.ActiveAt), Lease: a.LeaseUntil.Sub(a.ActiveAt)})
		}
	}
	return holds
}
