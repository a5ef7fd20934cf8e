package admission

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
)

// settleTime gives a flexible request the window that it will be judged by: of
// those that every limit allows and that have a place as the pool is, the
// earliest start, then the longest. Where a start's longest window is refused,
// its shortest is tried, then the next start at which a limit can have cleared.
// If nothing is accepted, it is the earliest and shortest of the range, whose
// blockers are then listed. A range that fails its Check gives no window.
func settleTime(r Request, v *View) Request {
	if r.Range == (calendar.TimeRange{}) {
		return r
	}
	span := r.Range
	r.Range, r.Window = calendar.TimeRange{}, calendar.Interval{}
	if span.StartNotEarlierThan.Before(v.Now) {
		span.StartNotEarlierThan = v.Now
	}
	if limit := v.Pool.Timers.MaxLease; span.MinDuration <= limit &&
		(span.MaxDuration == 0 || span.MaxDuration > limit) && !span.EndNotLaterThan.IsZero() {
		span.MaxDuration = limit
	}
	if span.Check() != nil {
		return r
	}
	r.Window = shortestFrom(span, span.StartNotEarlierThan)
	try := r
	for range laterTries {
		w, _, ok := v.Slots.FindRange(r.Shape, span, v.Tiers)
		if !ok {
			break
		}
		for _, try.Window = range []calendar.Interval{w, shortestFrom(span, w.Start)} {
			p, accepted := probePool(try, v, &v.PoolView, quota.Measure)
			if accepted {
				return try
			}
			span.StartNotEarlierThan, ok = nextStart(&p.Facts, v, w.Start)
		}
		if !ok || span.Check() != nil {
			break
		}
	}
	return r
}

// shortestFrom is the shortest window of the range that begins at start.
func shortestFrom(span calendar.TimeRange, start time.Time) calendar.Interval {
	return calendar.Interval{Start: start, End: calendar.Later(start.Add(span.MinDuration), span.EndNotEarlierThan)}
}
