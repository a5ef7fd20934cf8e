package calendar

import (
	"slices"
	"time"
)

// SetMargin sets how long a slot is cleaned after each booking: a booking keeps
// its GPUs that much longer from whoever comes after, and what is asked for must
// leave as much time before the next booking. A margin is not use: it counts in
// no Profile. A negative one is none. Changing it computes the calendar anew.
func (s *Slots) SetMargin(d time.Duration) {
	d = max(d, 0)
	if d == s.margin {
		return
	}
	s.margin, s.index = d, nil
	for slot := range s.lines {
		s.lines[slot].steps = s.lines[slot].steps[:0]
	}
	for _, l := range s.outside {
		l.steps = nil
	}
	for _, b := range s.bookings {
		lo, hi := s.occupiedSpan(b.Interval)
		for i, slot := range b.Slots {
			s.lineOf(slot).addUse(lo, hi, b.Shape().On(i))
		}
	}
}

// Margin returns the time set by SetMargin.
func (s *Slots) Margin() time.Duration { return s.margin }

// Resize sets the number of slots. Bookings on slots that are gone stay known,
// give no room to anybody, and are there again when the slots come back.
func (s *Slots) Resize(n int) {
	n = max(n, 0)
	if n == len(s.lines) {
		return
	}
	s.index, s.search = nil, search{}
	for slot := n; slot < len(s.lines); slot++ {
		if gone := s.lines[slot]; len(gone.entries) > 0 {
			s.outside[slot] = &gone
		}
	}
	old := len(s.lines)
	s.lines = slices.Clip(s.lines[:min(n, old)])
	s.lines = append(s.lines, make([]line, n-len(s.lines))...)
	for slot := old; slot < n; slot++ {
		if back := s.outside[slot]; back != nil {
			s.lines[slot] = *back
			delete(s.outside, slot)
		}
	}
}

// Outside returns the bookings that have a slot outside the pool, ordered by
// start and id.
func (s *Slots) Outside() []Booking {
	seen := map[string]bool{}
	var found []Booking
	for _, l := range s.outside {
		for _, e := range l.entries {
			if !seen[e.id] {
				seen[e.id] = true
				found = append(found, s.bookings[e.id])
			}
		}
	}
	slices.SortFunc(found, byStart)
	return found
}
