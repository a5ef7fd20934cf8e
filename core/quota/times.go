package quota

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// lookAhead bounds the search for the start from which a limit would hold: that
// many changes of what is held, or that many periods.
const lookAhead = 64

// timesOf finds when a violation begins and when the same ask would be within
// the limit. A request that could never be, because it alone exceeds the limit,
// has no such time.
func timesOf(h Holdings, a Ask, v Violation) Times {
	switch v.Rule {
	case RuleNominal:
		return Times{At: firstOver(h, a, v), ClearsAt: clearsAtInstant(h, a, v)}
	case RuleCohort:
		_, at := sharedAt(h, a, v.Resource)
		return Times{At: at, ClearsAt: clearsAtInstant(h, a, v)}
	default:
		return Times{At: v.Period.Start(a.Window.Start), ClearsAt: clearsInPeriod(h, a, v)}
	}
}

func firstOver(h Holdings, a Ask, v Violation) time.Time {
	for t, more := a.Window.Start, true; more && t.Before(a.Window.End); t, more = changeAfter(h.Committed, t) {
		if atTime(h.Committed, t)[v.Resource]+a.Demand[v.Resource] > v.Limit {
			return t
		}
	}
	return a.Window.Start
}

func clearsAtInstant(h Holdings, a Ask, v Violation) time.Time {
	t, more := nextChange(h, a.Window.Start)
	for range lookAhead {
		if !more {
			break
		}
		if again := a.startingAt(t); !v.repeats(h, again) {
			return t
		}
		t, more = nextChange(h, t)
	}
	return time.Time{}
}

// repeats reports whether a later ask would exceed the same limit.
func (v Violation) repeats(h Holdings, a Ask) bool {
	if v.Rule == RuleCohort {
		use, _ := sharedAt(h, a, v.Resource)
		return use > v.Limit
	}
	return peak(h.Committed, a.Window)[v.Resource]+a.Demand[v.Resource] > v.Limit
}

func clearsInPeriod(h Holdings, a Ask, v Violation) time.Time {
	for t, n := v.Period.Next(a.Window.Start), 0; n < lookAhead; t, n = v.Period.Next(t), n+1 {
		later := Standing{Limits: h.Limits, Ask: a.startingAt(t), Period: spent(h.Committed, h.Limits.Period, t)}
		if a.Speculative {
			later.Guessed = spent(h.Guessed, PerDay, t)
		}
		if !later.exceeds(v.Rule) {
			return t
		}
	}
	return time.Time{}
}

func (s *Standing) exceeds(rule Rule) bool {
	for _, v := range s.periodViolations() {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

func (a Ask) startingAt(t time.Time) Ask {
	a.Window = calendar.Interval{Start: t, End: t.Add(a.Window.Length())}
	return a
}
