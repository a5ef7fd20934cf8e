package calendar

import (
	"iter"
	"math/bits"
	"slices"
)

// SlotSet is a set of slot numbers, one bit each. The zero value is empty.
// Copies share what they hold; Clone does not. Not safe for concurrent use.
type SlotSet struct {
	words []uint64
}

// NewSlotSet returns an empty set with room for the slots below n.
func NewSlotSet(n int) SlotSet { return SlotSet{words: make([]uint64, wordsFor(n))} }

func wordsFor(n int) int { return (n + 63) / 64 }

// Add puts a slot in; a negative number changes nothing.
func (s *SlotSet) Add(slot int) {
	if slot < 0 {
		return
	}
	if missing := slot/64 + 1 - len(s.words); missing > 0 {
		s.words = append(s.words, make([]uint64, missing)...)
	}
	s.words[slot/64] |= 1 << (slot % 64)
}

// Remove takes a slot out.
func (s *SlotSet) Remove(slot int) {
	if slot >= 0 && slot/64 < len(s.words) {
		s.words[slot/64] &^= 1 << (slot % 64)
	}
}

// Has reports whether the slot is in the set.
func (s SlotSet) Has(slot int) bool {
	return slot >= 0 && slot/64 < len(s.words) && s.words[slot/64]&(1<<(slot%64)) != 0
}

// Len returns the number of slots in the set.
func (s SlotSet) Len() int { return countOnes(s.words) }

// Clear takes all slots out and keeps the memory.
func (s *SlotSet) Clear() { clear(s.words) }

// Clone returns a copy that shares nothing.
func (s SlotSet) Clone() SlotSet { return SlotSet{words: slices.Clone(s.words)} }

// All yields the slots in ascending order.
func (s SlotSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(w*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

func countOnes(words []uint64) int {
	n := 0
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Tiers says which slots are preferred: those of the first set to those of the
// second, and so on. A slot in no set is excluded, one in several counts in the
// first. Nil Tiers prefer no slot and exclude none; Tiers without a set exclude
// all.
type Tiers []SlotSet

// Rank orders slots for placement: smaller is better; a negative rank excludes
// the slot. A nil Rank takes the lowest numbers first.
type Rank func(slot int) int

// TiersOf turns a Rank of the slots below n into Tiers, asking it once for each
// slot. Whoever asks more than one question about the same preference keeps the
// result.
func TiersOf(n int, rank Rank) Tiers {
	if rank == nil {
		return nil
	}
	ranks := make([]int, n)
	for slot := range ranks {
		ranks[slot] = rank(slot)
	}
	distinct := slices.Clone(ranks)
	slices.Sort(distinct)
	distinct = slices.DeleteFunc(slices.Compact(distinct), func(r int) bool { return r < 0 })
	tiers := make(Tiers, len(distinct))
	for slot, r := range ranks {
		if i, found := slices.BinarySearch(distinct, r); found {
			tiers[i].Add(slot)
		}
	}
	return tiers
}

// allowedBelow returns the slots below n that are in any tier.
func (t Tiers) allowedBelow(n int) SlotSet {
	all := NewSlotSet(n)
	fillBelow(all.words, n)
	if t == nil {
		return all
	}
	some := NewSlotSet(n)
	for _, s := range t {
		for w := range s.words[:min(len(some.words), len(s.words))] {
			some.words[w] |= s.words[w] & all.words[w]
		}
	}
	return some
}
