package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// ErrNoRoom is wrapped by the errors of Place and Move when a slot has too few
// GPUs free.
var ErrNoRoom = errors.New("too few GPUs are free")

// Booking takes GPUs devices on each of Slots during Interval, and Short fewer on
// the last of them.
type Booking struct {
	ID       string
	Interval Interval
	Slots    []int
	GPUs     int
	Short    int `json:",omitzero"` // below GPUs; 0 for as many on each
}

// Shape returns the shape of what is booked.
func (b *Booking) Shape() capacity.Shape {
	return capacity.Shape{Nodes: len(b.Slots), PerNode: b.GPUs, Short: b.Short}
}

// On returns how many devices the booking takes of a slot; 0 when the slot is not
// one of its.
func (b *Booking) On(slot int) int {
	i := slices.Index(b.Slots, slot)
	if i < 0 {
		return 0
	}
	return b.Shape().On(i)
}

// Slots is the calendar of one pool: a number of places for a node, each with
// the same number of GPUs, and the bookings that are placed on them. What is
// booked has a place; a slot is never booked beyond its GPUs, except by Force.
//
// Answers depend on the bookings, the size and the margin alone, not on how they
// came about. Not safe for concurrent use, also not for reading: questions use
// memory of the calendar.
type Slots struct {
	perSlot  int
	margin   time.Duration
	lines    []line
	outside  map[int]*line // of slots that are not the pool's
	bookings map[string]Booking
	index    *index // nil until a question needs it
	search   search
}

// NewSlots returns an empty calendar of n slots with perSlot GPUs each, with no
// margin.
func NewSlots(n, perSlot int) *Slots {
	return &Slots{perSlot: perSlot, lines: make([]line, max(n, 0)), outside: map[int]*line{},
		bookings: map[string]Booking{}}
}

// Size returns the number of slots.
func (s *Slots) Size() int { return len(s.lines) }

// occupiedSpan is the time for which an interval takes its slots: itself and the
// margin after it.
func (s *Slots) occupiedSpan(iv Interval) (lo, hi int64) {
	lo, hi = toInstant(iv.Start), toInstant(iv.End)
	if lo >= hi {
		return lo, lo
	}
	return lo, shiftInstant(hi, s.margin)
}

// Fits reports whether gpus more devices are free on the slot during the whole
// interval and the margin after it.
func (s *Slots) Fits(slot, gpus int, iv Interval) bool {
	if slot < 0 || slot >= len(s.lines) || gpus > s.perSlot {
		return false
	}
	lo, hi := s.occupiedSpan(iv)
	return lo == hi || s.lines[slot].peak(lo, hi)+gpus <= s.perSlot
}

// Place adds a booking. It refuses, changing nothing, what does not fit
// (ErrNoRoom), is empty, names a slot twice, or repeats an id.
func (s *Slots) Place(b Booking) error {
	if _, ok := s.bookings[b.ID]; ok {
		return fmt.Errorf("booking %s is already placed", b.ID)
	}
	if !b.Interval.Valid() || !b.Shape().Valid() {
		return fmt.Errorf("booking %s is empty", b.ID)
	}
	for i, slot := range b.Slots {
		if slices.Contains(b.Slots[:i], slot) {
			return fmt.Errorf("booking %s names slot %d twice", b.ID, slot)
		}
		if !s.Fits(slot, b.Shape().On(i), b.Interval) {
			return fmt.Errorf("booking %s does not fit on slot %d: %w", b.ID, slot, ErrNoRoom)
		}
	}
	s.Force(b)
	return nil
}

// FitsAll reports whether a booking that is not in the calendar has room on all
// of its slots.
func (s *Slots) FitsAll(b Booking) bool {
	for i, slot := range b.Slots {
		if !s.Fits(slot, b.Shape().On(i), b.Interval) {
			return false
		}
	}
	return true
}

// Force adds a booking without asking whether it fits, in place of one with the
// same id. It is for rebuilding the calendar from what is already promised, which
// must be shown even where a pool was shrunk below it.
func (s *Slots) Force(b Booking) {
	s.Remove(b.ID)
	b.Slots = slices.Clone(b.Slots)
	s.bookings[b.ID] = b
	for i, slot := range b.Slots {
		s.addToSlot(slot, b, b.Shape().On(i))
	}
}

// Remove takes a booking out; an unknown id changes nothing.
func (s *Slots) Remove(id string) {
	b, ok := s.bookings[id]
	if !ok {
		return
	}
	delete(s.bookings, id)
	for i, slot := range b.Slots {
		s.removeFromSlot(slot, b, b.Shape().On(i))
	}
}

// Booking returns a booking by its id. Its Slots are not the caller's to change.
func (s *Slots) Booking(id string) (Booking, bool) {
	b, ok := s.bookings[id]
	return b, ok
}

// Move gives a placed booking other slots, as many as before; it may keep some.
// It refuses, changing nothing, an unknown id, a slot named twice, and a slot
// without room for what the booking does not have there yet (ErrNoRoom).
func (s *Slots) Move(id string, slots []int) error {
	b, ok := s.bookings[id]
	if !ok {
		return fmt.Errorf("booking %s is not in the calendar", id)
	}
	if len(slots) != len(b.Slots) || !areDistinct(slots) {
		return fmt.Errorf("booking %s moves from %d slots to as many different ones, not to %v", id, len(b.Slots),
			slots)
	}
	for i, slot := range slots {
		if more := b.Shape().On(i) - b.On(slot); more > 0 && !s.Fits(slot, more, b.Interval) {
			return fmt.Errorf("booking %s does not fit on slot %d: %w", id, slot, ErrNoRoom)
		}
	}
	b.Slots = slots
	s.Force(b)
	return nil
}

// addToSlot adds a booking's use of so many GPUs to one slot, and take takes it back.
func (s *Slots) addToSlot(slot int, b Booking, gpus int) {
	lo, hi := s.occupiedSpan(b.Interval)
	l := s.lineOf(slot)
	l.addEntry(entry{start: toInstant(b.Interval.Start), end: toInstant(b.Interval.End), id: b.ID})
	l.addUse(lo, hi, gpus)
	if s.index != nil && s.owns(slot) && lo < hi {
		s.index.addEdges(lo, 1)
		s.index.addEdges(hi, 1)
		s.index.refreshSlot(rootPlace(), slot, l, lo, hi)
	}
}

func (s *Slots) removeFromSlot(slot int, b Booking, gpus int) {
	lo, hi := s.occupiedSpan(b.Interval)
	l := s.lineOf(slot)
	l.removeEntry(toInstant(b.Interval.Start), b.ID)
	l.addUse(lo, hi, -gpus)
	if s.index != nil && s.owns(slot) && lo < hi {
		s.index.refreshSlot(rootPlace(), slot, l, lo, hi)
		s.index.removeEdge(lo)
		s.index.removeEdge(hi)
	}
	if !s.owns(slot) && len(l.entries) == 0 {
		delete(s.outside, slot)
	}
}

func (s *Slots) owns(slot int) bool { return slot >= 0 && slot < len(s.lines) }

// lineOf returns what is known of a slot, also of one outside the pool.
func (s *Slots) lineOf(slot int) *line {
	if s.owns(slot) {
		return &s.lines[slot]
	}
	l := s.outside[slot]
	if l == nil {
		l = &line{}
		s.outside[slot] = l
	}
	return l
}

// On returns the bookings on the slot that overlap iv, ordered by start and id.
func (s *Slots) On(slot int, iv Interval) []Booking {
	l := s.knownLine(slot)
	if l == nil {
		return nil
	}
	var on []Booking
	end := toInstant(iv.End)
	for i := l.firstEndingAfter(toInstant(iv.Start)); i < len(l.entries) && l.entries[i].start < end; i++ {
		b := s.bookings[l.entries[i].id]
		repeated := len(on) > 0 && on[len(on)-1].ID == b.ID // forced with the slot named twice
		if b.Interval.Overlaps(iv) && !repeated {
			on = append(on, b)
		}
	}
	return on
}

// knownLine is line without making one.
func (s *Slots) knownLine(slot int) *line {
	if s.owns(slot) {
		return &s.lines[slot]
	}
	return s.outside[slot]
}

// byStart orders bookings by start and id.
func byStart(a, b Booking) int {
	return cmp.Or(a.Interval.Start.Compare(b.Interval.Start), cmp.Compare(a.ID, b.ID))
}

// String tells the size, the margin and each slot's steps and bookings. Calendars
// that answer alike read alike: what a question leaves behind is not told.
func (s *Slots) String() string {
	all := slices.SortedFunc(maps.Values(s.bookings), byStart)
	steps := make([][]step, len(s.lines))
	for slot := range s.lines {
		steps[slot] = s.lines[slot].steps
	}
	return fmt.Sprintf("%d slots of %d GPUs, %s apart: %v %v", len(s.lines), s.perSlot, s.margin, steps, all)
}
