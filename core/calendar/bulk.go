package calendar

import (
	"cmp"
	"iter"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
)

// A calendar of many bookings is built at once: entries and steps are sorted slot by
// slot, where adding one booking after the other would move what lies behind each.

// Build returns a pool's calendar: the places that the occupants take, each with the
// pool's cleaning after it.
func Build(p capacity.Pool, all ...iter.Seq[Occupant]) *Slots {
	s := NewSlots(p.MaxNodes, p.PerNode)
	s.SetMargin(p.Timers.Cleaning)
	count := 0
	for _, occupants := range all {
		for range occupants {
			count++
		}
	}
	s.bookings = make(map[string]Booking, count)
	var own []int // the calendar's own lists of slots, one behind the other
	for _, occupants := range all {
		for o := range occupants {
			b, takes := o.Occupies(s.perSlot)
			if !takes {
				delete(s.bookings, b.ID)
				continue
			}
			if cap(own)-len(own) < len(b.Slots) {
				own = make([]int, 0, max(count, len(b.Slots)))
			}
			from := len(own)
			own = append(own, b.Slots...)
			b.Slots = own[from:len(own):len(own)]
			s.bookings[b.ID] = b
		}
	}
	s.layOut()
	return s
}

// turn is where a booking's use of a slot begins or ends.
type turn struct {
	at   int64
	more int
}

// layOut fills the empty lines with what is booked.
func (s *Slots) layOut() {
	begins, total := countOnSlots(s)
	entries, turns := make([]entry, total), make([]turn, 2*total)
	next := slices.Clone(begins)
	for id, b := range s.bookings {
		e := entry{start: toInstant(b.Interval.Start), end: toInstant(b.Interval.End), id: id}
		lo, hi := s.occupiedSpan(b.Interval)
		for i, slot := range b.Slots {
			if !s.owns(slot) {
				s.addToSlot(slot, b, b.Shape().On(i))
				continue
			}
			at, gpus := next[slot], b.Shape().On(i)
			next[slot]++
			entries[at] = e
			turns[2*at], turns[2*at+1] = turn{lo, gpus}, turn{hi, -gpus}
		}
	}
	steps := make([]step, 0, 2*total)
	for slot := range s.lines {
		from, to := begins[slot], begins[slot+1]
		l := &s.lines[slot]
		l.entries = entries[from:to:to]
		l.sortEntries()
		at := len(steps)
		steps = appendSteps(steps, turns[2*from:2*to])
		l.steps = steps[at:len(steps):len(steps)]
	}
}

// countOnSlots returns how many entries the slots before each one have, and how many
// numbers of slots the bookings name.
func countOnSlots(s *Slots) (before []int, named int) {
	before = make([]int, len(s.lines)+1)
	for _, b := range s.bookings {
		named += len(b.Slots)
		for _, slot := range b.Slots {
			if s.owns(slot) {
				before[slot+1]++
			}
		}
	}
	for slot := range s.lines {
		before[slot+1] += before[slot]
	}
	return before, named
}

// sortEntries puts entries that came in any order into the line's.
func (l *line) sortEntries() {
	slices.SortFunc(l.entries, func(a, b entry) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Compare(a.id, b.id)
	})
	l.updateLatestEnds(0)
}

// appendSteps appends the steps that the turns of one slot add up to, and sorts the
// turns for it.
func appendSteps(steps []step, turns []turn) []step {
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	level := 0
	for i := 0; i < len(turns); {
		at, before := turns[i].at, level
		for ; i < len(turns) && turns[i].at == at; i++ {
			level += turns[i].more
		}
		if level != before {
			steps = append(steps, step{at: at, level: level})
		}
	}
	return steps
}
