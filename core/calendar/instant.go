package calendar

import (
	"math"
	"time"
)

// Inside, an instant is a number of nanoseconds since 1970 in UTC: one machine
// word to compare. What lies beyond the years that it can count (1678 to 2262)
// is held at the first or last instant.
const (
	firstInstant = math.MinInt64 + 1
	lastInstant  = math.MaxInt64 - 1
	never        = math.MaxInt64 // after every instant
)

// reach is how many seconds from 1970 nanoseconds can count, less a margin.
const reach = math.MaxInt64/int64(time.Second) - 1

func toInstant(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec < -reach:
		return firstInstant
	case sec > reach:
		return lastInstant
	default:
		return t.UnixNano()
	}
}

func toTime(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// shiftInstant is ns moved by d, held inside the countable years.
func shiftInstant(ns int64, d time.Duration) int64 {
	sum := ns + int64(d)
	switch {
	case d > 0 && (sum < ns || sum > lastInstant):
		return lastInstant
	case d < 0 && (sum > ns || sum < firstInstant):
		return firstInstant
	default:
		return sum
	}
}

// timeLike is the time at ns, told as from tells it (its location).
func timeLike(from time.Time, ns int64) time.Time {
	start := toInstant(from)
	if d := ns - start; (d >= 0) == (ns >= start) {
		return from.Add(time.Duration(d))
	}
	return toTime(ns)
}
