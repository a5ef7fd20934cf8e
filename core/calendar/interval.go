// Package calendar keeps who uses how many GPUs, where and when: half-open
// intervals, step functions of use over time, and a pool's slots with the
// bookings placed on them.
package calendar

import "time"

// Interval is the half-open time [Start, End).
type Interval struct {
	Start, End time.Time
}

// Valid reports whether the interval is not empty.
func (iv Interval) Valid() bool { return iv.Start.Before(iv.End) }

// Length returns the interval's duration.
func (iv Interval) Length() time.Duration { return iv.End.Sub(iv.Start) }

// Contains reports whether t is inside.
func (iv Interval) Contains(t time.Time) bool { return !t.Before(iv.Start) && t.Before(iv.End) }

// Overlaps reports whether the two intervals share an instant.
func (iv Interval) Overlaps(o Interval) bool {
	return iv.Start.Before(o.End) && o.Start.Before(iv.End)
}

// From returns the part of the interval that is not before t.
func (iv Interval) From(t time.Time) Interval {
	if iv.Start.Before(t) {
		iv.Start = t
	}
	return iv
}

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two instants.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
