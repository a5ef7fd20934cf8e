package backtest

import (
	"cmp"
	"slices"
	"time"

	core "github.com/forewarm/forewarm/core/backtest"
)

// scheduleShare is how much of the opening hours a fixed schedule covers: it
// keeps what was enough for nine tenths of them.
const scheduleShare = 0.9

// scheduleLevels returns, tenant by tenant, how many GPUs a fixed schedule keeps:
// what was enough for nine tenths of the opening hours of the warm-up.
func scheduleLevels(t core.Trace, hours core.Hours) []int {
	first, from, _ := t.Window()
	levels := make([]int, len(t.Tenants))
	for i, steps := range t.Demand() {
		levels[i] = smallestLevel(steps, openSpans(first, from, hours))
	}
	return levels
}

// span is a time from one second to another.
type span struct{ from, to int64 }

// openSpans returns the opening hours between two seconds.
func openSpans(from, to int64, h core.Hours) []span {
	var all []span
	day := time.Unix(from, 0).In(h.Zone)
	for n := 0; ; n++ {
		open := time.Date(day.Year(), day.Month(), day.Day()+n, h.Open, 0, 0, 0, h.Zone)
		if open.Unix() >= to {
			return all
		}
		if open.Weekday() == time.Saturday || open.Weekday() == time.Sunday {
			continue
		}
		shut := time.Date(day.Year(), day.Month(), day.Day()+n, h.Close, 0, 0, 0, h.Zone).Unix()
		if s := (span{max(from, open.Unix()), min(to, shut)}); s.from < s.to {
			all = append(all, s)
		}
	}
}

// held is for how many seconds a level was wanted.
type held struct {
	level   int
	seconds int64
}

// smallestLevel returns the smallest level that covers scheduleShare of the spans.
func smallestLevel(steps []core.Step, spans []span) int {
	var times []held
	total, next, level := int64(0), 0, 0
	for _, s := range spans {
		for at := s.from; at < s.to; {
			for next < len(steps) && steps[next].At <= at {
				level = steps[next].Level
				next++
			}
			until := s.to
			if next < len(steps) {
				until = min(until, steps[next].At)
			}
			times = append(times, held{level, until - at})
			total += until - at
			at = until
		}
	}
	return quantileOf(times, total)
}

func quantileOf(times []held, total int64) int {
	slices.SortFunc(times, func(a, b held) int { return cmp.Compare(a.level, b.level) })
	sum := int64(0)
	for _, t := range times {
		if sum += t.seconds; float64(sum) >= scheduleShare*float64(total) {
			return t.level
		}
	}
	return 0
}
