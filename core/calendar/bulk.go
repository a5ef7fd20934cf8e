package calendar

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
)

// A calendar of many bookings is built at once: they are sorted once for all slots,
// where adding one booking after the other would move what lies behind each.

// Build returns a pool's calendar: the places that the occupants take, each with the
// pool's cleaning after it.
func Build(p capacity.Pool, all ...iter.Seq[Occupant]) *Slots {
	s := NewSlots(p.MaxNodes, p.PerNode)
	s.SetMargin(p.Timers.Cleaning)
	s.layOut(collectBookings(s, all))
	return s
}

// collectBookings notes what the occupants take, and lists it in any order.
func collectBookings(s *Slots, all []iter.Seq[Occupant]) []Booking {
	count := 0
	for _, occupants := range all {
		for range occupants {
			count++
		}
	}
	s.bookings = make(map[string]Booking, count)
	placed, repeated := make([]Booking, 0, count), false
	var own []int // the calendar's own lists of slots, one behind the other
	for _, occupants := range all {
		for o := range occupants {
			b, takes := o.Occupies(s.perSlot)
			before := len(s.bookings)
			if !takes {
				delete(s.bookings, b.ID)
				repeated = repeated || len(s.bookings) < before
				continue
			}
			if cap(own)-len(own) < len(b.Slots) {
				own = make([]int, 0, max(count, len(b.Slots)))
			}
			from := len(own)
			own = append(own, b.Slots...)
			b.Slots = own[from:len(own):len(own)]
			s.bookings[b.ID] = b
			repeated = repeated || len(s.bookings) == before
			placed = append(placed, b)
		}
	}
	if repeated {
		return slices.Collect(maps.Values(s.bookings))
	}
	return placed
}

// turn is where a booking's use of its slots begins or ends.
type turn struct {
	at int64
	of int32 // the booking's index
}

func compareTurns(a, b turn) int {
	if a.at != b.at {
		return cmp.Compare(a.at, b.at)
	}
	return cmp.Compare(a.of, b.of)
}

// layOut fills the empty lines with what is booked, from the first instant to the last.
func (s *Slots) layOut(placed []Booking) {
	begins, ends := make([]turn, len(placed)), make([]turn, len(placed))
	for i := range placed {
		lo, hi := s.occupiedSpan(placed[i].Interval)
		begins[i], ends[i] = turn{lo, int32(i)}, turn{hi, int32(i)}
	}
	slices.SortFunc(begins, compareTurns)
	slices.SortFunc(ends, compareTurns)
	reserveLines(s, placed)
	for len(ends) > 0 {
		if len(begins) > 0 && begins[0].at <= ends[0].at {
			b := &placed[begins[0].of]
			appendEntries(s, b)
			appendSteps(s, b, begins[0].at, 1)
			begins = begins[1:]
			continue
		}
		appendSteps(s, &placed[ends[0].of], ends[0].at, -1)
		ends = ends[1:]
	}
}

// reserveLines gives each line the memory for what is booked on it.
func reserveLines(s *Slots, placed []Booking) {
	counts, total := make([]int32, len(s.lines)), 0
	for i := range placed {
		for _, slot := range placed[i].Slots {
			if s.owns(slot) {
				counts[slot]++
				total++
			}
		}
	}
	entries, steps := make([]entry, total), make([]step, 2*total)
	for slot, n := range counts {
		l := &s.lines[slot]
		l.entries, entries = entries[:0:n], entries[n:]
		l.steps, steps = steps[:0:2*n], steps[2*n:]
	}
}

// appendEntries notes a booking on each of its slots, where none begins later.
func appendEntries(s *Slots, b *Booking) {
	e := entry{start: toInstant(b.Interval.Start), end: toInstant(b.Interval.End), id: b.ID}
	for _, slot := range b.Slots {
		s.lineOf(slot).appendEntry(e)
	}
}

// appendEntry is addEntry where no entry begins later.
func (l *line) appendEntry(e entry) {
	e.latest = max(e.end, firstInstant)
	if n := len(l.entries); n > 0 {
		last := &l.entries[n-1]
		if last.start == e.start && last.id > e.id {
			l.addEntry(e)
			return
		}
		e.latest = max(e.end, last.latest)
	}
	l.entries = append(l.entries, e)
}

// appendSteps changes the use of a booking's slots at an instant, which is not before any
// of their steps, by what the booking takes of each.
func appendSteps(s *Slots, b *Booking, at int64, sign int) {
	shape := b.Shape()
	for i, slot := range b.Slots {
		s.lineOf(slot).appendStep(at, sign*shape.On(i))
	}
}

// appendStep raises the use by n from an instant on. A step that in the end changes nothing is
// dropped again.
func (l *line) appendStep(at int64, n int) {
	if n == 0 {
		return
	}
	last := len(l.steps) - 1
	if last < 0 || l.steps[last].at != at {
		l.steps = append(l.steps, step{at: at, level: l.levelBefore(last+1) + n})
		return
	}
	if l.steps[last].level += n; l.steps[last].level == l.levelBefore(last) {
		l.steps = l.steps[:last]
	}
}
