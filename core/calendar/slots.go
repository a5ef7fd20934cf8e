package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/gpu"
)

// Booking takes GPUs devices on each of Slots during Interval.
type Booking struct {
	ID       string
	Interval Interval
	Slots    []int
	GPUs     int
}

// Slots is the calendar of one pool: a number of places for a node, each with
// the same number of GPUs, and the bookings that are placed on them. What is
// booked has a place; a slot is never booked beyond its GPUs. Not safe for
// concurrent use.
type Slots struct {
	perSlot  int
	use      []Profile
	bookings map[string]Booking
}

// NewSlots returns an empty calendar of n slots with perSlot GPUs each.
func NewSlots(n, perSlot int) *Slots {
	return &Slots{perSlot: perSlot, use: make([]Profile, n), bookings: map[string]Booking{}}
}

// Fits reports whether gpus more devices are free on the slot during the whole
// interval.
func (s *Slots) Fits(slot, gpus int, iv Interval) bool {
	return slot >= 0 && slot < len(s.use) && gpus <= s.perSlot && s.use[slot].Peak(iv)+gpus <= s.perSlot
}

// Place adds a booking. It refuses, changing nothing, what does not fit, names
// a slot twice, or repeats an id.
func (s *Slots) Place(b Booking) error {
	if _, ok := s.bookings[b.ID]; ok {
		return fmt.Errorf("booking %s is already placed", b.ID)
	}
	if !b.Interval.Valid() || b.GPUs <= 0 || len(b.Slots) == 0 {
		return fmt.Errorf("booking %s is empty", b.ID)
	}
	seen := make(map[int]bool, len(b.Slots))
	for _, slot := range b.Slots {
		if seen[slot] {
			return fmt.Errorf("booking %s names slot %d twice", b.ID, slot)
		}
		if !s.Fits(slot, b.GPUs, b.Interval) {
			return fmt.Errorf("booking %s does not fit on slot %d", b.ID, slot)
		}
		seen[slot] = true
	}
	s.Force(b)
	return nil
}

// Force adds a booking without asking whether it fits. It is for rebuilding the
// calendar from what is already promised, which must be shown even where a pool
// was shrunk below it.
func (s *Slots) Force(b Booking) {
	b.Slots = slices.Clone(b.Slots)
	s.bookings[b.ID] = b
	for _, slot := range b.Slots {
		if slot >= 0 && slot < len(s.use) {
			s.use[slot].Add(b.Interval, b.GPUs)
		}
	}
}

// Remove takes a booking out; an unknown id changes nothing.
func (s *Slots) Remove(id string) {
	b, ok := s.bookings[id]
	if !ok {
		return
	}
	delete(s.bookings, id)
	for _, slot := range b.Slots {
		if slot >= 0 && slot < len(s.use) {
			s.use[slot].Add(b.Interval, -b.GPUs)
		}
	}
}

// Rank orders slots for placement: smaller is better; a negative rank excludes
// the slot. A nil Rank takes the lowest numbers first.
type Rank func(slot int) int

// Find returns the best slots that can take the shape during the whole
// interval, or false. The best are those of the smallest rank, then those with
// the least room left (best fit), then the lowest numbers, so that the same
// calendar always gives the same answer. An empty shape or interval has no
// place.
func (s *Slots) Find(shape gpu.Shape, iv Interval, rank Rank) ([]int, bool) {
	if shape.Nodes <= 0 || shape.PerNode <= 0 || !iv.Valid() {
		return nil, false
	}
	type candidate struct{ slot, rank, used int }
	var fit []candidate
	for slot := range s.use {
		r := 0
		if rank != nil {
			r = rank(slot)
		}
		if r < 0 {
			continue
		}
		if used := s.use[slot].Peak(iv); shape.PerNode <= s.perSlot && used+shape.PerNode <= s.perSlot {
			fit = append(fit, candidate{slot, r, used})
		}
	}
	if len(fit) < shape.Nodes {
		return nil, false
	}
	slices.SortFunc(fit, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.used, a.used), cmp.Compare(a.slot, b.slot))
	})
	slots := make([]int, shape.Nodes)
	for i := range slots {
		slots[i] = fit[i].slot
	}
	return slots, true
}

// Earliest returns the first start in [from, until] at which the shape is free
// for length, with its slots. The only starts worth trying are from itself and
// the ends of bookings.
func (s *Slots) Earliest(shape gpu.Shape, length time.Duration, from, until time.Time) (time.Time, []int, bool) {
	start, ok := s.firstStart(shape, length, from)
	if !ok || start.After(until) {
		return time.Time{}, nil, false
	}
	slots, ok := s.Find(shape, Interval{start, start.Add(length)}, nil)
	return start, slots, ok
}

// firstStart sweeps over time instead of trying every start: on each slot, each
// stretch that is too full for the shape forbids the starts from length before
// it to its end, and the answer is the first instant at which few enough slots
// forbid it.
func (s *Slots) firstStart(shape gpu.Shape, length time.Duration, from time.Time) (time.Time, bool) {
	if shape.Nodes <= 0 || shape.PerNode <= 0 || shape.PerNode > s.perSlot || shape.Nodes > len(s.use) || length <= 0 {
		return time.Time{}, false
	}
	type edge struct {
		at    time.Time
		delta int
	}
	var edges []edge
	for slot := range s.use {
		for _, full := range s.use[slot].above(s.perSlot-shape.PerNode, length) {
			edges = append(edges, edge{full.Start, 1}, edge{full.End, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	forbidden, start, i := 0, from, 0
	for {
		for ; i < len(edges) && !edges[i].at.After(start); i++ {
			forbidden += edges[i].delta
		}
		if len(s.use)-forbidden >= shape.Nodes {
			return start, true
		}
		start = edges[i].at // while a slot is forbidden, an end is still to come
	}
}

// Free returns how many GPUs of the pool are free during the whole interval.
func (s *Slots) Free(iv Interval) int {
	total := 0
	for slot := range s.use {
		total += max(0, s.perSlot-s.use[slot].Peak(iv))
	}
	return total
}

// Rooms returns, for each number of GPUs from 0 to those of a slot, how many
// slots have that many free during the whole interval. Slots that rank excludes
// are not counted.
func (s *Slots) Rooms(iv Interval, rank Rank) []int {
	rooms := make([]int, s.perSlot+1)
	for slot := range s.use {
		if rank != nil && rank(slot) < 0 {
			continue
		}
		for g := 0; g <= s.perSlot-s.use[slot].Peak(iv); g++ {
			rooms[g]++
		}
	}
	return rooms
}

// NextUse returns the start of the first booking on the slot that ends after t,
// or false when the slot is free from t on.
func (s *Slots) NextUse(slot int, t time.Time) (time.Time, bool) {
	var first time.Time
	found := false
	for _, b := range s.bookings {
		if b.Interval.End.After(t) && slices.Contains(b.Slots, slot) && (!found || b.Interval.Start.Before(first)) {
			first, found = b.Interval.Start, true
		}
	}
	return first, found
}

// On returns the bookings on the slot that overlap iv, ordered by start and id.
func (s *Slots) On(slot int, iv Interval) []Booking {
	var on []Booking
	for _, b := range s.bookings {
		if b.Interval.Overlaps(iv) && slices.Contains(b.Slots, slot) {
			on = append(on, b)
		}
	}
	slices.SortFunc(on, func(a, b Booking) int {
		return cmp.Or(a.Interval.Start.Compare(b.Interval.Start), cmp.Compare(a.ID, b.ID))
	})
	return on
}
