package learned

import (
	"slices"
	"time"
)

// week is how many hours of the week there are; the first begins on Sunday, UTC.
const week = 7 * 24

const (
	// fadeWeek is how much less an hour of a week ago counts: a half-life of four
	// weeks.
	fadeWeek = 0.8409
	// drawn is how many hours like the mean each hour of the week counts besides
	// what was seen of it.
	drawn = 4
	// longest is how many hours without a look are filled in as hours in which
	// nobody came; more change nothing, but would take time.
	longest = 8 * week
)

// Arrivals is what a pool has learned about when people come without having
// reserved: for each hour of the week the nodes that such starts took, and the
// hours that were watched, both fading. The zero value has seen nothing.
type Arrivals struct {
	Until time.Time // everything before was counted
	Open  float64   // nodes taken in the hour of Until, which is not over
	Taken []float64 // nodes, by the hour of the week; empty until an hour was over
	Hours []float64 // hours, likewise
}

// Start is one start without a reservation.
type Start struct {
	At    time.Time
	Nodes float64 // how many nodes it took; a part of one counts as that part
}

// Observe returns the arrivals after watching until now. Starts that are not
// after Until were counted before and are not again.
func (a Arrivals) Observe(starts []Start, now time.Time) Arrivals {
	if a.Until.IsZero() || !now.After(a.Until) {
		if a.Until.IsZero() {
			a.Until = now
		}
		return a
	}
	starts = slices.Clone(starts)
	slices.SortFunc(starts, func(x, y Start) int { return x.At.Compare(y.At) })
	a.Taken, a.Hours = slices.Clone(a.Taken), slices.Clone(a.Hours)
	for _, s := range starts {
		if s.At.After(a.Until) && !s.At.After(now) {
			a = a.closeHours(s.At)
			a.Open += s.Nodes
		}
	}
	return a.closeHours(now)
}

// closeHours closes the hours between Until and t. The slices are the receiver's.
func (a Arrivals) closeHours(t time.Time) Arrivals {
	from, to := a.Until.Truncate(time.Hour), t.Truncate(time.Hour)
	if skip := to.Add(-longest * time.Hour); from.Before(skip) {
		from = skip
	}
	for ; from.Before(to); from = from.Add(time.Hour) {
		if len(a.Taken) != week || len(a.Hours) != week {
			a.Taken, a.Hours = make([]float64, week), make([]float64, week)
		}
		h := hourOfWeek(from)
		a.Taken[h], a.Hours[h] = round3(a.Taken[h]*fadeWeek+a.Open), round3(a.Hours[h]*fadeWeek+1)
		a.Open = 0
	}
	a.Until = t
	return a
}

func hourOfWeek(t time.Time) int {
	t = t.UTC()
	return int(t.Weekday())*24 + t.Hour()
}

// Watched returns how much was seen, in hours.
func (a Arrivals) Watched() float64 {
	sum := 0.0
	for _, h := range a.Hours {
		sum += h
	}
	return sum
}

// Expected returns how many nodes starts without a reservation are expected to
// take between two times at most a week apart: the rate of each hour of the week,
// drawn towards the mean of all.
func (a Arrivals) Expected(from, to time.Time) float64 {
	if len(a.Taken) == 0 || !from.Before(to) {
		return 0
	}
	taken, hours := 0.0, a.Watched()
	for _, n := range a.Taken {
		taken += n
	}
	mean, sum := taken/hours, 0.0
	for from.Before(to) {
		next := from.Truncate(time.Hour).Add(time.Hour)
		if next.After(to) {
			next = to
		}
		h := hourOfWeek(from)
		sum += next.Sub(from).Hours() * (a.Taken[h] + drawn*mean) / (a.Hours[h] + drawn)
		from = next
	}
	return sum
}
