package calendar

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// MaxLevels is the most levels that one FreeBusy returns: a month in steps of
// five minutes.
const MaxLevels = 10_000

// Level is what is free during all of [Start, End): at every instant, on the same
// slots. Cleaning is not free.
type Level struct {
	Start, End time.Time
	FreeGPUs   int
	FreeSlots  int // slots of which every GPU is free
	// with the most GPUs that one booking of the whole time could have; zero when there is none
	Largest capacity.Shape
}

// FreeBusy returns what is free in each step of [from, to), the last of which may
// be shorter; with a step of 0, a level begins wherever something changes. It
// returns at most MaxLevels, and then ends early. It costs the slots and the
// changes between from and to, sorted.
func (s *Slots) FreeBusy(from, to time.Time, step time.Duration) []Level {
	lo, hi := toInstant(from), toInstant(to)
	if lo >= hi || step < 0 {
		return nil
	}
	t := newFreeCounts(s, lo)
	turns := changesInside(s, lo, hi)
	var found []Level
	for start := lo; start < hi && len(found) < MaxLevels; {
		end := hi
		switch {
		case step > 0:
			end = min(hi, shiftInstant(start, step))
		case len(turns) > 0 && turns[0].at > start:
			end = turns[0].at
		case len(turns) > 0:
			end = afterFirst(turns, hi)
		}
		for ; len(turns) > 0 && turns[0].at < end; turns = turns[1:] {
			t.applyChange(turns[0], start)
		}
		level := t.levelAt(s.perSlot)
		level.Start, level.End = timeLike(from, start), timeLike(from, end)
		found = append(found, level)
		t.beginStep()
		start = end
	}
	return found
}

// freeChange is a change of what is free on a slot.
type freeChange struct {
	at         int64
	slot, free int
}

// changesInside returns the changes inside (lo, hi), in order.
func changesInside(s *Slots, lo, hi int64) []freeChange {
	var all []freeChange
	for slot := range s.lines {
		l := &s.lines[slot]
		for i := l.firstAfter(lo); i < len(l.steps) && l.steps[i].at < hi; i++ {
			all = append(all, freeChange{l.steps[i].at, slot, max(0, s.perSlot-l.steps[i].level)})
		}
	}
	slices.SortFunc(all, func(a, b freeChange) int {
		return cmp.Or(cmp.Compare(a.at, b.at),
			cmp.Compare(a.slot, b.slot))
	})
	return all
}

// afterFirst returns the first instant of turns that is later than their first.
func afterFirst(turns []freeChange, none int64) int64 {
	for _, t := range turns {
		if t.at > turns[0].at {
			return t.at
		}
	}
	return none
}

// freeCounts counts slots by what is free on them during the whole of one step.
type freeCounts struct {
	now     []int // free on each slot at the instant reached
	least   []int // the least since the step's start
	slots   []int // number of slots by least
	touched []int
}

func newFreeCounts(s *Slots, lo int64) *freeCounts {
	t := &freeCounts{now: make([]int, len(s.lines)), slots: make([]int, s.perSlot+1)}
	for slot := range s.lines {
		t.now[slot] = max(0, s.perSlot-s.lines[slot].peak(lo, lo+1))
		t.slots[t.now[slot]]++
	}
	t.least = slices.Clone(t.now)
	return t
}

// applyChange changes what is free on a slot, during a step that began at start.
func (t *freeCounts) applyChange(u freeChange, start int64) {
	t.now[u.slot] = u.free
	if u.at == start || u.free < t.least[u.slot] {
		t.countSlot(u.slot, u.free)
	}
	t.touched = append(t.touched, u.slot)
}

func (t *freeCounts) countSlot(slot, least int) {
	t.slots[t.least[slot]]--
	t.least[slot] = least
	t.slots[least]++
}

// beginStep begins the next step.
func (t *freeCounts) beginStep() {
	for _, slot := range t.touched {
		t.countSlot(slot, t.now[slot])
	}
	t.touched = t.touched[:0]
}

func (t *freeCounts) levelAt(perSlot int) Level {
	l := Level{FreeSlots: t.slots[perSlot]}
	for room, g := 0, perSlot; g > 0; g-- {
		l.FreeGPUs += g * t.slots[g]
		if room += t.slots[g]; room == 0 {
			continue
		}
		shape := capacity.Shape{Nodes: room, PerNode: g}
		if rest := t.mostBelow(g); rest > 0 {
			shape = capacity.Shape{Nodes: room + 1, PerNode: g, Short: g - rest}
		}
		if shape.GPUs() > l.Largest.GPUs() {
			l.Largest = shape
		}
	}
	return l
}

// mostBelow is the most that a slot has free which has less than g.
func (t *freeCounts) mostBelow(g int) int {
	for g--; g > 0 && t.slots[g] == 0; g-- {
	}
	return g
}
