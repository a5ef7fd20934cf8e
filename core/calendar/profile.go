package calendar

import (
	"slices"
	"time"
)

// Profile is a step function of use over time. The zero value is zero
// everywhere. A Profile is not safe for concurrent use.
type Profile struct {
	steps []step // sorted by at; each level holds until the next step; the last level is 0
}

type step struct {
	at    time.Time
	level int
}

// Add raises the level by n (n may be negative) during iv. An empty interval
// changes nothing. Add(iv, n) and Add(iv, -n) cancel out exactly.
func (p *Profile) Add(iv Interval, n int) {
	if !iv.Valid() || n == 0 {
		return
	}
	first := p.cut(iv.Start)
	last := p.cut(iv.End)
	for i := first; i < last; i++ {
		p.steps[i].level += n
	}
	p.merge()
}

// cut makes sure that a step begins at t and returns its index.
func (p *Profile) cut(t time.Time) int {
	i, found := slices.BinarySearchFunc(p.steps, t, func(s step, t time.Time) int { return s.at.Compare(t) })
	if found {
		return i
	}
	level := 0
	if i > 0 {
		level = p.steps[i-1].level
	}
	p.steps = slices.Insert(p.steps, i, step{at: t, level: level})
	return i
}

// merge drops the steps that change nothing, so that equal functions have
// equal representations.
func (p *Profile) merge() {
	level := 0
	p.steps = slices.DeleteFunc(p.steps, func(s step) bool {
		same := s.level == level
		level = s.level
		return same
	})
}

// At returns the level at t.
func (p *Profile) At(t time.Time) int {
	i, found := slices.BinarySearchFunc(p.steps, t, func(s step, t time.Time) int { return s.at.Compare(t) })
	if found {
		return p.steps[i].level
	}
	if i == 0 {
		return 0
	}
	return p.steps[i-1].level
}

// Peak returns the highest level during iv; for an empty interval, 0.
func (p *Profile) Peak(iv Interval) int {
	if !iv.Valid() {
		return 0
	}
	peak := p.At(iv.Start)
	i, _ := slices.BinarySearchFunc(p.steps, iv.Start, func(s step, t time.Time) int { return s.at.Compare(t) })
	for ; i < len(p.steps) && p.steps[i].at.Before(iv.End); i++ {
		peak = max(peak, p.steps[i].level)
	}
	return peak
}

// above returns the starts at which a stretch of the given length would meet a
// level above limit, as disjoint intervals in order. limit must not be negative.
func (p *Profile) above(limit int, length time.Duration) []Interval {
	var found []Interval
	for i := 0; i+1 < len(p.steps); i++ {
		if p.steps[i].level <= limit {
			continue
		}
		// A start of exactly length before the stretch does not meet it.
		iv := Interval{Start: p.steps[i].at.Add(-length + 1), End: p.steps[i+1].at}
		if n := len(found); n > 0 && !iv.Start.After(found[n-1].End) {
			found[n-1].End = iv.End
			continue
		}
		found = append(found, iv)
	}
	return found
}

// Changes returns the instants at which the level changes, in order. The slice
// is the caller's.
func (p *Profile) Changes() []time.Time {
	times := make([]time.Time, len(p.steps))
	for i, s := range p.steps {
		times[i] = s.at
	}
	return times
}
