package plan

import (
	"math"
	"time"
)

// Window counts events over a sliding length of time, approximately: what
// happened in the length before counts by the part of it that still overlaps.
type Window struct {
	Since         time.Time // when the present length began
	Before, Count int       // events in the length before, and in this one
}

// Add returns the window after n more events at now.
func (w Window) Add(n int, length time.Duration, now time.Time) Window {
	w = w.at(length, now)
	w.Count += n
	return w
}

// Take returns the window without n of its events, those of the present length
// first. There are never fewer than none.
func (w Window) Take(n int, length time.Duration, now time.Time) Window {
	w = w.at(length, now)
	recent := min(n, w.Count)
	w.Count, w.Before = w.Count-recent, max(0, w.Before-(n-recent))
	return w
}

// Below returns when Sum will be less than limit, which must be positive, if
// nothing is added: now, or later.
func (w Window) Below(limit int, length time.Duration, now time.Time) time.Time {
	if w = w.at(length, now); w.Sum(length, now) < limit {
		return now
	}
	since, fading, stays := w.Since, w.Before, w.Count
	if stays >= limit { // those of this length fade in the next
		since, fading, stays = since.Add(length), stays, 0
	}
	part := 1 - float64(limit-1-stays)/float64(fading)
	// Rounded up to what can be stored, with what rounding may have cost.
	return since.Add(time.Duration(math.Ceil(part * float64(length)))).Truncate(time.Microsecond).Add(2 * time.Microsecond)
}

// Sum returns how many events happened during length before now, rounded up.
func (w Window) Sum(length time.Duration, now time.Time) int {
	w = w.at(length, now)
	left := 1 - float64(now.Sub(w.Since))/float64(length)
	return w.Count + int(math.Ceil(float64(w.Before)*left))
}

func (w Window) at(length time.Duration, now time.Time) Window {
	switch age := now.Sub(w.Since); {
	case w.Since.IsZero() || age >= 2*length || age < 0:
		return Window{Since: now}
	case age >= length:
		return Window{Since: w.Since.Add(length), Before: w.Count}
	default:
		return w
	}
}
