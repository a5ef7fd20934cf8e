package quota

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// lookAhead bounds the search for the start from which a limit would hold: that
// many days ahead, changes of what a cohort holds, or periods.
const lookAhead = 64

// timesOf finds when a violation begins and when the same ask would be within
// the limit. A request that could never be, because it alone exceeds the limit,
// has no such time.
func timesOf(h *Holdings, a *Ask, v Violation) Times {
	switch v.Rule {
	case RuleNominal:
		return Times{At: firstOver(h, a, v), ClearsAt: clearsForOne(h, a, v)}
	case RuleCohort:
		_, at := sharedAt(h, a, v.Resource)
		return Times{At: at, ClearsAt: clearsForCohort(h, a, v)}
	default:
		return Times{At: v.Period.Start(a.bookingStart()), ClearsAt: clearsInPeriod(h, a, v)}
	}
}

func firstOver(h *Holdings, a *Ask, v Violation) time.Time {
	for t, more := a.Window.Start, true; more && t.Before(a.Window.End); t, more = changeAfter(h.Committed, t) {
		if atTime(h.Committed, t)[v.Resource]+a.Demand[v.Resource] > v.Limit {
			return t
		}
	}
	return a.Window.Start
}

func clearsForOne(h *Holdings, a *Ask, v Violation) time.Time {
	if h.Committed == nil {
		return time.Time{}
	}
	var limit, demand Vector
	for r := range limit {
		limit[r] = math.MaxInt64
	}
	limit[v.Resource], demand[v.Resource] = v.Limit, a.Demand[v.Resource]
	start, found := h.Committed.held.FirstFit(limit, demand, a.Window.Length(), a.Window.Start,
		a.Window.Start.AddDate(0, 0, lookAhead))
	if !found {
		return time.Time{}
	}
	return start
}

func clearsForCohort(h *Holdings, a *Ask, v Violation) time.Time {
	t, more := nextChange(h, a.Window.Start)
	for n := 0; more && n < lookAhead; n++ {
		if use, _ := sharedAt(h, withStart(a, t), v.Resource); use <= v.Limit {
			return t
		}
		t, more = nextChange(h, t)
	}
	return time.Time{}
}

// clearsInPeriod knows of no later start for what prolongs a booking: that counts
// in the same period whenever it is asked for.
func clearsInPeriod(h *Holdings, a *Ask, v Violation) time.Time {
	if !a.Since.IsZero() {
		return time.Time{}
	}
	for t, n := v.Period.Next(a.Window.Start), 0; n < lookAhead; t, n = v.Period.Next(t), n+1 {
		later := UsageReport{Limits: h.Limits, Ask: *withStart(a, t), Period: spentIn(h.Committed, h.Limits.Period, t)}
		if a.Speculative {
			later.Speculative = spentIn(h.Speculative, PerDay, t)
		}
		if !later.exceeds(v.Rule) {
			return t
		}
	}
	return time.Time{}
}

func (s *UsageReport) exceeds(rule Rule) bool {
	for _, v := range s.periodViolations() {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

// withStart is the ask with another start.
func withStart(a *Ask, t time.Time) *Ask {
	later := *a
	later.Window = calendar.Interval{Start: t, End: t.Add(a.Window.Length())}
	return &later
}
