package admission

import (
	"sort"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
)

const (
	// horizon is how far ahead a later start is searched.
	horizon = 14 * 24 * time.Hour
	// laterTries bounds the search for a start that all limits allow.
	laterTries = 8
	// shortest is the part of the longest possible length below which a shorter window is no
	// help.
	shortest = 4
	// grain is what lengths of offered windows are multiples of.
	grain = time.Minute
	// otherPools is how many other pools are offered at most.
	otherPools = 3
)

// listProbes looks at what people change first: a later start, a smaller size, a
// shorter window, another pool. Each is measured as a request of its own, so that
// it succeeds when taken at once.
func listProbes(r *Request, v *View, f *Facts) []Probe {
	var found []Probe
	if p, ok := probeLater(r, v, f); ok {
		found = append(found, p)
	}
	if p, ok := probeSmaller(r, v, f); ok {
		found = append(found, p)
	}
	if p, ok := probeShorter(r, v, f); ok {
		found = append(found, p)
	}
	return append(found, probeElsewhere(r, v)...)
}

// probePool measures a request in one pool and reports whether it would be accepted.
func probePool(r Request, v *View, p *PoolView, how measuring) (Probe, bool) {
	found := Probe{Request: r}
	look := *v
	look.Buf = nil // its place is not the answer's
	measureFacts(&found.Facts, &r, &look, p, how)
	return found, len(listRefusals(&r, &found.Facts)) == 0
}

func probeLater(r *Request, v *View, f *Facts) (Probe, bool) {
	if !f.Pool.everHolds(r.Shape) || !r.Window.Valid() {
		return Probe{}, false
	}
	from := r.Window.Start
	if from.Before(v.Now) {
		from = v.Now
	}
	until := from.Add(horizon)
	try := *r
	try.Now = false
	for range laterTries {
		start, _, ok := v.Slots.Earliest(r.Shape, r.Window.Length(), from, until)
		if !ok {
			return Probe{}, false
		}
		try.Window = calendar.Interval{Start: start, End: start.Add(r.Window.Length())}
		p, ok := probePool(try, v, &v.PoolView, quota.Measure)
		if ok {
			return p, true
		}
		if from, ok = nextStart(&p.Facts, v, start); !ok {
			return Probe{}, false
		}
	}
	return Probe{}, false
}

// nextStart is the next instant at which a start that was refused could be
// accepted: when the last of its limits clears, as far as that is known, or when
// what is committed or used changes next.
func nextStart(f *Facts, v *View, start time.Time) (time.Time, bool) {
	var next time.Time
	for _, violation := range f.Limits.Violations() {
		next = calendar.Later(next, violation.ClearsAt)
	}
	for _, c := range append([]CapFacts{f.Key, f.User}, f.Makers...) {
		if !c.Capped {
			continue
		}
		for _, violation := range c.Violations() {
			if violation.Period != "" {
				next = calendar.Later(next, violation.Period.Next(start))
			}
		}
	}
	if next.After(start) {
		return next, true
	}
	found := false
	if v.Committed != nil {
		next, found = v.Committed.Next(start)
	}
	if used := v.Used[f.Split.Workload]; used != nil {
		if t, more := used.Next(start); more && (!found || t.Before(next)) {
			next, found = t, true
		}
	}
	return next, found
}

// probeSmaller looks for the largest number of GPUs below the asked one that has a
// place. Limits only bind harder as the number grows, so their bound is found
// by halving; a place is then a question to the counted rooms, not to the
// calendar, so that a request for a whole data centre is answered at once.
func probeSmaller(r *Request, v *View, f *Facts) (Probe, bool) {
	if len(windowReasons(r, f)) > 0 {
		return Probe{}, false
	}
	try := func(n int) Request {
		q := *r
		q.Shape, _ = v.Pool.ShapeOf(capacity.Layout{}, n)
		return q
	}
	most := min(r.Shape.GPUs()-1, v.Pool.PerNode*v.Pool.MaxNodes)
	allowed := sort.Search(max(0, most), func(i int) bool {
		q := try(i + 1)
		g := Facts{Now: f.Now, Pool: f.Pool, Window: f.Window, Cost: q.costOf(&v.Pool, f.Window), Split: f.Split}
		measureLimits(&g, &q, v, &v.PoolView, quota.MeasureWithoutTimes)
		return len(limitBlockers(&q, &g)) > 0
	})
	rooms := v.Slots.RoomsIn(f.Window, v.Tiers)
	for n := allowed; n > 0; n-- {
		q := try(n)
		if q.Shape.PerNode >= len(rooms) || rooms[q.Shape.PerNode] < q.Shape.Full() ||
			rooms[q.Shape.Least()] < q.Shape.Nodes {
			continue
		}
		if p, ok := probePool(q, v, &v.PoolView, quota.MeasureWithoutTimes); ok {
			return p, true
		}
	}
	return Probe{}, false
}

// probeShorter looks for the longest window from the same start that has a place;
// limits and room only bind harder as it grows. It begins at the longest that may
// ever be asked for, however far beyond it the request went.
func probeShorter(r *Request, v *View, f *Facts) (Probe, bool) {
	if _, gone := whyPast(r, f); gone || !f.Pool.everHolds(r.Shape) {
		return Probe{}, false
	}
	try := func(n int) Request {
		q := *r
		q.Window.End = q.Window.Start.Add(time.Duration(n) * grain)
		return q
	}
	longest := min(f.Window.Length()-1, f.longestWindow(r))
	least := int((longest/shortest + grain - 1) / grain)
	most := int(longest / grain)
	if least < 1 || most < least {
		return Probe{}, false
	}
	beyond := sort.Search(most-least+1, func(i int) bool {
		_, ok := probePool(try(least+i), v, &v.PoolView, quota.MeasureWithoutTimes)
		return !ok
	})
	if beyond == 0 {
		return Probe{}, false
	}
	return probePool(try(least+beyond-1), v, &v.PoolView, quota.MeasureWithoutTimes)
}

// longestWindow is the longest window that the pool and every cap allow.
func (f *Facts) longestWindow(r *Request) time.Duration {
	longest := f.Pool.MaxLease
	for _, c := range append([]CapFacts{f.Key, f.User}, f.Makers...) {
		if c.Capped {
			longest = min(longest, c.Caps.MaxWindow+r.Boot)
		}
	}
	return longest
}

// probeElsewhere looks at the same number of GPUs in the other pools.
func probeElsewhere(r *Request, v *View) []Probe {
	var found []Probe
	for i := range v.Others {
		q := *r
		if r.Now && v.Others[i].Pool.Observed {
			continue // nobody is handed GPUs there
		}
		shape, ok := v.Others[i].Pool.ShapeOf(capacity.Layout{}, r.Shape.GPUs())
		if !ok || len(found) == otherPools {
			break
		}
		q.Shape = shape
		if p, accepted := probePool(q, v, &v.Others[i], quota.MeasureWithoutTimes); accepted {
			found = append(found, p)
		}
	}
	return found
}
