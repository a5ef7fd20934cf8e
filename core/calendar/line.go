package calendar

import (
	"slices"
	"sort"
)

// line is what the calendar knows of one slot: the steps of its use, and its
// bookings. A slot has few (8 to 80 in a busy month), which a sorted slice
// holds best.
type line struct {
	steps   []step  // sorted by at; each level holds until the next step; the last level is 0
	entries []entry // sorted by start and id
}

type step struct {
	at    int64
	level int
}

// entry is a booking's own interval on the slot, without the margin.
type entry struct {
	start, end int64
	latest     int64 // the latest end of this and all entries before
	id         string
}

// addUse raises the use by n during [lo, hi).
func (l *line) addUse(lo, hi int64, n int) {
	if lo >= hi || n == 0 {
		return
	}
	first := l.cutAt(lo)
	last := l.cutAt(hi)
	for i := first; i < last; i++ {
		l.steps[i].level += n
	}
	l.joinSteps(last)
	l.joinSteps(first)
}

// cutAt makes sure that a step begins at an instant and returns its index.
func (l *line) cutAt(at int64) int {
	i := l.firstAfter(at)
	if i > 0 && l.steps[i-1].at == at {
		return i - 1
	}
	l.steps = slices.Insert(l.steps, i, step{at: at, level: l.levelBefore(i)})
	return i
}

// joinSteps drops a step that changes nothing, so that equal functions have equal
// steps.
func (l *line) joinSteps(i int) {
	if l.steps[i].level == l.levelBefore(i) {
		l.steps = slices.Delete(l.steps, i, i+1)
	}
}

// firstAfter returns the index of the first step after an instant.
func (l *line) firstAfter(at int64) int {
	lo, hi := 0, len(l.steps)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if l.steps[mid].at <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// levelBefore returns the level before step i.
func (l *line) levelBefore(i int) int {
	if i == 0 {
		return 0
	}
	return l.steps[i-1].level
}

// peak returns the highest use during [lo, hi), which must not be empty.
func (l *line) peak(lo, hi int64) int {
	i := l.firstAfter(lo)
	peak := l.levelBefore(i)
	for ; i < len(l.steps) && l.steps[i].at < hi; i++ {
		peak = max(peak, l.steps[i].level)
	}
	return peak
}

// firstAbove returns the first instant from lo on at which the use is above limit,
// or never.
func (l *line) firstAbove(limit int, lo int64) int64 {
	i := l.firstAfter(lo)
	if l.levelBefore(i) > limit {
		return lo
	}
	for ; i < len(l.steps); i++ {
		if l.steps[i].level > limit {
			return l.steps[i].at
		}
	}
	return never
}

// addEntry notes a booking among the slot's.
func (l *line) addEntry(e entry) {
	i := l.findEntry(e.start, e.id)
	e.latest = never // not known yet
	l.entries = slices.Insert(l.entries, i, e)
	l.updateLatestEnds(i)
}

// removeEntry forgets one entry of a booking.
func (l *line) removeEntry(start int64, id string) {
	i := l.findEntry(start, id)
	if i < len(l.entries) && l.entries[i].id == id {
		l.entries = slices.Delete(l.entries, i, i+1)
		l.updateLatestEnds(i)
	}
}

// findEntry returns the index of the first entry not before start and id.
func (l *line) findEntry(start int64, id string) int {
	return sort.Search(len(l.entries), func(i int) bool {
		e := &l.entries[i]
		return e.start > start || e.start == start && e.id >= id
	})
}

// updateLatestEnds computes the latest ends anew from entry i on, which is new or behind one
// that has left, as far as they change.
func (l *line) updateLatestEnds(i int) {
	latest := int64(firstInstant)
	if i > 0 {
		latest = l.entries[i-1].latest
	}
	for known := false; i < len(l.entries) && !known; i++ {
		e := &l.entries[i]
		latest = max(latest, e.end)
		known = e.latest == latest
		e.latest = latest
	}
}

// firstEndingAfter returns the index of the first entry that ends after an instant.
func (l *line) firstEndingAfter(at int64) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].latest > at })
}
