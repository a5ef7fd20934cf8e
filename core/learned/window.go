package learned

import (
	"slices"
	"time"
)

// Window counts events over a sliding length of time. Those of one grain count as
// the latest of them, so that few numbers are kept: each counts for the length,
// and for no more than a grain longer.
type Window []EventCount

// EventCount is a number of events at a time. A Window's are in order.
type EventCount struct {
	At time.Time
	N  int
}

// windowGrains is into how many parts a length is divided.
const windowGrains = 64

// Add returns the window after n more events at now.
func (w Window) Add(n int, length time.Duration, now time.Time) Window {
	if w = w.copyCounted(length, now); n <= 0 {
		return w
	}
	grain, last := length/windowGrains, len(w)-1
	if last >= 0 && !w[last].At.Truncate(grain).Before(now.Truncate(grain)) {
		w[last] = EventCount{At: now, N: w[last].N + n}
		return w
	}
	return append(w, EventCount{At: now, N: n})
}

// Take returns the window without one event for each of the times at which it was
// added. With others taken in their place, those would count again once these are old,
// and a limit would hold for longer than was said. There are never fewer than none.
func (w Window) Take(added []time.Time, length time.Duration, now time.Time) Window {
	w = w.copyCounted(length, now)
	for _, at := range added {
		own := slices.IndexFunc(w, func(e EventCount) bool { return !e.At.Before(at) })
		if own >= 0 && w[own].N > 0 {
			w[own].N--
		}
	}
	if w = slices.DeleteFunc(w, func(e EventCount) bool { return e.N == 0 }); len(w) == 0 {
		return nil
	}
	return w
}

// copyCounted is a copy of what counts at now; nil where nothing does.
func (w Window) copyCounted(length time.Duration, now time.Time) Window {
	if w = w.countedAt(length, now); len(w) == 0 {
		return nil
	}
	return slices.Clone(w)
}

// Below returns when Sum will be less than limit, which must be positive, if
// nothing is added: now, or later.
func (w Window) Below(limit int, length time.Duration, now time.Time) time.Time {
	sum := w.Sum(length, now)
	for _, m := range w.countedAt(length, now) {
		if sum < limit {
			break
		}
		sum -= m.N
		now = m.At.Add(length + time.Microsecond - 1).Truncate(time.Microsecond) // what can be stored
	}
	return now
}

// Sum returns how many events happened during length before now.
func (w Window) Sum(length time.Duration, now time.Time) int {
	sum := 0
	for _, m := range w.countedAt(length, now) {
		sum += m.N
	}
	return sum
}

// countedAt is what counts at now. It shares the marks with w.
func (w Window) countedAt(length time.Duration, now time.Time) Window {
	for len(w) > 0 && now.Sub(w[0].At) >= length {
		w = w[1:]
	}
	for len(w) > 0 && w[len(w)-1].At.After(now) { // the clock was set back
		w = w[:len(w)-1]
	}
	return w
}
