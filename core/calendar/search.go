package calendar

import "math/bits"

// scanned is the largest pool whose slots are looked at one by one: a question
// then costs no more than through the index, which a small calendar, often built
// for one question, does not need.
const scanned = 64

// search is one question to the calendar: which slots have how much room during
// [lo, hi). Its memory is kept for the next.
type search struct {
	lo, hi     int64
	known      int      // the sets of up to so many GPUs are computed
	sure       []uint64 // by number of GPUs: slots that surely have as many free
	maybe      []uint64 // the same and slots that fail only in an hour partly asked for
	left       []uint64 // slots that no tier has offered yet
	none       []uint64
	full, part []int32 // nodes of the index inside [lo, hi), and hours at its ends
}

// beginSearch begins a question for at least need GPUs on a slot.
func (s *Slots) beginSearch(lo, hi int64, need int) {
	q, words := &s.search, wordsFor(len(s.lines))
	if q.none == nil {
		q.sure, q.maybe = make([]uint64, s.perSlot*words), make([]uint64, s.perSlot*words)
		q.left, q.none = make([]uint64, words), make([]uint64, words)
	}
	q.lo, q.hi, q.known = lo, hi, need-1
	if len(s.lines) <= scanned {
		s.scanSlots(need)
		return
	}
	if s.index == nil {
		s.buildIndex()
	}
	q.full, q.part = s.index.coverSpan(rootPlace(), lo, hi, q.full[:0], q.part[:0])
}

// scanSlots answers for all numbers of GPUs from need on by looking at every slot.
func (s *Slots) scanSlots(need int) {
	q, words := &s.search, wordsFor(len(s.lines))
	clear(q.sure)
	for slot := range s.lines {
		for g := min(s.perSlot, s.perSlot-s.lines[slot].peak(q.lo, q.hi)); g >= need; g-- {
			q.sure[(g-1)*words+slot/64] |= 1 << (slot % 64)
		}
	}
	copy(q.maybe, q.sure)
	q.known = s.perSlot
}

// monthBlocks is about how many blocks a busy month takes.
const monthBlocks = 64

// buildIndex makes the index of what is placed.
func (s *Slots) buildIndex() {
	s.index = newIndex(len(s.lines), s.perSlot)
	s.index.reserveBlocks(min(len(s.bookings)/radix, monthBlocks))
	for _, b := range s.bookings {
		lo, hi := s.occupiedSpan(b.Interval)
		if n := countOwned(s, b.Slots); n > 0 && lo < hi {
			s.index.addEdges(lo, n)
			s.index.addEdges(hi, n)
		}
	}
	for slot := range s.lines {
		if l := &s.lines[slot]; len(l.steps) > 0 {
			s.index.fillSlot(rootPlace(), slot, 0, l.steps)
		}
	}
}

// countOwned counts the slots that are the pool's.
func countOwned(s *Slots, slots []int) (n int32) {
	for _, slot := range slots {
		if s.owns(slot) {
			n++
		}
	}
	return n
}

// slotsWithRoom returns the slots that surely have g GPUs free, and with them those that
// may have: they fail only in an hour that is partly asked for. It must be asked
// in ascending order of g, beginning with what survey was told.
func (s *Slots) slotsWithRoom(g int) (sure, maybe []uint64) {
	q, words := &s.search, wordsFor(len(s.lines))
	if g > s.perSlot {
		return q.none, q.none
	}
	sure, maybe = q.sure[(g-1)*words:g*words], q.maybe[(g-1)*words:g*words]
	if g <= q.known {
		return sure, maybe
	}
	q.known = g
	for i := range maybe {
		maybe[i] = ^uint64(0)
	}
	for _, node := range q.full {
		removeFrom(maybe, s.index.atLeast(node, g))
	}
	copy(sure, maybe)
	for _, node := range q.part {
		removeFrom(sure, s.index.atLeast(node, g))
	}
	if len(q.full) == 0 {
		fillBelow(maybe, len(s.lines))
	}
	return sure, maybe
}

// removeFrom takes out of a what is not in b.
func removeFrom(a, b []uint64) {
	for i, word := range b[:len(a)] {
		a[i] &= word
	}
}

// fillBelow puts the slots below n in.
func fillBelow(set []uint64, n int) {
	for i := range set {
		set[i] = ^uint64(0)
	}
	if n%64 != 0 {
		set[len(set)-1] = 1<<(n%64) - 1
	}
}

// pickTightest appends slots with room for need GPUs to dst until it has want: of those
// that no tier has offered yet, those in tier; those that are sure first, the
// least room first. A nil tier has all slots.
func (s *Slots) pickTightest(dst []int, want, need int, tier []uint64) []int {
	q := &s.search
	for g := need; g <= s.perSlot && len(dst) < want; g++ {
		room, _ := s.slotsWithRoom(g)
		more, _ := s.slotsWithRoom(g + 1)
		any := uint64(0)
		for w := range room {
			word := room[w] & q.newlyOffered(tier, w)
			any |= word
			dst = takeSlots(dst, want, w, word&^more[w])
		}
		if any == 0 {
			break
		}
	}
	if len(dst) < want {
		dst = s.pickChecked(dst, want, need, tier)
	}
	return dst
}

// pickChecked goes on with slots whose hours do not tell.
func (s *Slots) pickChecked(dst []int, want, need int, tier []uint64) []int {
	q := &s.search
	sure, maybe := s.slotsWithRoom(need)
	for w := range maybe {
		for word := maybe[w] &^ sure[w] & q.newlyOffered(tier, w); word != 0 && len(dst) < want; word &= word - 1 {
			slot := w*64 + bits.TrailingZeros64(word)
			if s.lines[slot].peak(q.lo, q.hi)+need <= s.perSlot {
				dst = append(dst, slot)
			}
		}
	}
	return dst
}

// newlyOffered returns the w-th word of what a tier offers anew.
func (q *search) newlyOffered(tier []uint64, w int) uint64 {
	switch {
	case tier == nil:
		return q.left[w]
	case w < len(tier):
		return q.left[w] & tier[w]
	default:
		return 0
	}
}

// passTier takes a tier's slots out of what is left.
func (q *search) passTier(tier []uint64) {
	for w := range q.left[:min(len(q.left), len(tier))] {
		q.left[w] &^= tier[w]
	}
}

// takeSlots appends the slots of one word to dst until it has want.
func takeSlots(dst []int, want, w int, word uint64) []int {
	for ; word != 0 && len(dst) < want; word &= word - 1 {
		dst = append(dst, w*64+bits.TrailingZeros64(word))
	}
	return dst
}
