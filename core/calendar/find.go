package calendar

import (
	"math/bits"

	"github.com/forewarm/forewarm/core/capacity"
)

// Find is FindInto for a preference told as a Rank. The slice is the caller's.
func (s *Slots) Find(shape capacity.Shape, iv Interval, rank Rank) ([]int, bool) {
	if !s.canEverHold(shape, iv) {
		return nil, false
	}
	return s.FindInto(nil, shape, iv, TiersOf(len(s.lines), rank))
}

// FindInto appends the best slots that can take the shape during the whole
// interval (and the margin after it) to dst, in order of preference, or returns
// dst as it was and false if and only if there are too few. It allocates nothing
// when dst has room.
//
// The best are those of the first tier, then those with the least room left (best
// fit), then the lowest numbers, so that the same calendar always gives the same
// answer. In a pool of more than 64 slots room is judged by whole hours: a slot
// counts as having what is free on it during all hours that the interval touches;
// those that by this measure have too little, but do have room during the interval
// itself, come last of their tier. An empty shape or interval has no place. The
// node that has fewer GPUs than the others gets its slot last, the best of those
// that are left.
func (s *Slots) FindInto(dst []int, shape capacity.Shape, iv Interval, tiers Tiers) ([]int, bool) {
	if !s.canEverHold(shape, iv) {
		return dst, false
	}
	have := len(dst)
	dst = s.findMore(dst, have, have+shape.Full(), shape.PerNode, iv, tiers)
	if shape.Short > 0 && len(dst)-have == shape.Full() {
		dst = s.findMore(dst, have, have+shape.Nodes, shape.Least(), iv, tiers)
	}
	if len(dst)-have < shape.Nodes {
		return dst[:have], false
	}
	return dst, true
}

// findMore appends slots with room for need GPUs, none of those from have on,
// until there are want, if there are so many.
func (s *Slots) findMore(dst []int, have, want, need int, iv Interval, tiers Tiers) []int {
	lo, hi := s.occupiedSpan(iv)
	s.beginSearch(lo, hi, need)
	if _, maybe := s.slotsWithRoom(need); countOnes(maybe) < want-have {
		return dst
	}
	fillBelow(s.search.left, len(s.lines))
	for _, slot := range dst[have:] {
		s.search.left[slot/64] &^= 1 << (slot % 64)
	}
	if tiers == nil {
		return s.pickTightest(dst, want, need, nil)
	}
	return s.pickByTier(dst, want, need, tiers)
}

func (s *Slots) pickByTier(dst []int, want, need int, tiers Tiers) []int {
	for _, tier := range tiers {
		if len(dst) == want {
			break
		}
		if len(tier.words) > 0 {
			dst = s.pickTightest(dst, want, need, tier.words)
			s.search.passTier(tier.words)
		}
	}
	return dst
}

// canEverHold reports whether the pool could ever hold the shape.
func (s *Slots) canEverHold(shape capacity.Shape, iv Interval) bool {
	return iv.Valid() && shape.Valid() && shape.PerNode <= s.perSlot && shape.Nodes <= len(s.lines) &&
		toInstant(iv.Start) < toInstant(iv.End)
}

// Free returns how many GPUs of the pool are free during the whole interval and
// the margin after it.
func (s *Slots) Free(iv Interval) int {
	total := 0
	for _, n := range s.RoomsIn(iv, nil)[1:] {
		total += n
	}
	return total
}

// RoomsIn returns, for each number of GPUs from 0 to those of a slot, how many of
// the slots in tiers have that many free during the whole interval and the margin
// after it. In an empty interval all are free.
func (s *Slots) RoomsIn(iv Interval, tiers Tiers) []int {
	rooms := make([]int, s.perSlot+1)
	left := tiers.allowedBelow(len(s.lines))
	lo, hi := s.occupiedSpan(iv)
	rooms[0] = left.Len()
	if lo == hi {
		for g := range rooms {
			rooms[g] = rooms[0]
		}
		return rooms
	}
	s.beginSearch(lo, hi, 1)
	unsure := SlotSet{words: make([]uint64, len(left.words))}
	for g := 1; g <= s.perSlot; g++ {
		sure, maybe := s.slotsWithRoom(g)
		for w, in := range left.words {
			rooms[g] += bits.OnesCount64(sure[w] & in)
			unsure.words[w] |= maybe[w] &^ sure[w] & in
		}
	}
	s.checkUnsure(rooms, unsure)
	return rooms
}

// checkUnsure counts the room of slots whose hours do not tell.
func (s *Slots) checkUnsure(rooms []int, unsure SlotSet) {
	for slot := range unsure.All() {
		for g := min(s.perSlot, s.perSlot-s.lines[slot].peak(s.search.lo, s.search.hi)); g > 0; g-- {
			if sure, _ := s.slotsWithRoom(g); sure[slot/64]&(1<<(slot%64)) == 0 {
				rooms[g]++
			}
		}
	}
}
