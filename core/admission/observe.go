package admission

import (
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Observe gathers what Judge decides on: the numbers of every limit, a place or
// what must give way for one, and, where the answer is no, what could be offered
// instead.
func Observe(r Request, v View) Facts {
	var f Facts
	r = settleTime(r, &v)
	how := measuring(quota.Measure)
	if v.Brief {
		how = quota.MeasureWithoutTimes
	}
	measureFacts(&f, &r, &v, &v.PoolView, how)
	if !f.Room.Found && f.Pool.everHolds(r.Shape) && f.Window.Valid() {
		if len(v.Movable) > 0 && len(r.At) == 0 {
			if slots, moves, ok := v.Slots.Repack(v.Movable, r.Shape, f.Window, v.Tiers); ok {
				f.Room.Slots, f.Room.Moves, f.Room.Found = slots, moves, true
			}
		}
		if !f.Room.Found && r.Class == reservation.Guaranteed && !f.Split.exceedsShare(r.Shape.GPUs()) {
			makeRoom(&f, &r, &v)
		}
		if !f.Room.Found {
			noteFull(&f, &r, &v.PoolView, v.Brief)
		}
	}
	if r.Since.IsZero() && !v.Brief && len(listRefusals(&r, &f)) > 0 { // what is prolonged has no other place or time
		f.Probes = listProbes(&r, &v, &f)
	}
	return f
}

// measureFacts fills f in for the request in one pool, with a place if there is one
// as it is.
func measureFacts(f *Facts, r *Request, v *View, p *PoolView, how measuring) {
	w := r.Window
	f.Now, f.Pool, f.Window = v.Now, poolFacts(&p.Pool), w
	f.Cost = r.costOf(&p.Pool, w)
	measureLimits(f, r, v, p, how)
	f.Split = splitFacts(r, p, w)
	f.Room.Slots, f.Room.Found = p.findPlace(v.Buf[:0], r, w)
}

// measuring is quota.Measure, or what is like it and faster.
type measuring func(quota.Holdings, quota.Ask) quota.UsageReport

// measureLimits fills in how the organization, the key and the user stand.
func measureLimits(f *Facts, r *Request, v *View, p *PoolView, how measuring) {
	ask := quota.Ask{
		Window: f.Window, Since: r.Since, Boot: r.Boot, Demand: quota.Demand(p.Pool, r.Shape),
		Spend: addedSpend(f, r, &p.Pool), Speculative: r.Class == reservation.Speculative,
	}
	f.Limits = how(quota.Holdings{Limits: v.Limits, Committed: v.Committed, Speculative: v.SpeculativeCommitments,
		Cohort: v.Cohort}, ask)
	f.Key = capFacts(&v.Key, ask, v)
	f.User = capFacts(&v.User, ask, v)
	if f.Pause = nil; r.Class == reservation.Speculative {
		f.Pause = v.Pause
	}
	f.Makers = nil
	for i := range v.Makers {
		f.Makers = append(f.Makers, capFacts(&v.Makers[i], ask, v))
	}
}

// addedSpend is what the request adds to what is spent. What prolongs a booking adds
// what the whole of it costs more than before: costs are rounded once for each.
func addedSpend(f *Facts, r *Request, p *capacity.Pool) quota.Spend {
	if r.Since.IsZero() {
		return quota.SpendOf(r.chargedWindow(f.Window), r.Shape.GPUs(), f.Cost)
	}
	whole := calendar.Interval{Start: r.Since, End: f.Window.End}
	cost := r.costOf(p, whole)
	if !r.Prolongs {
		return quota.SpendOf(r.chargedWindow(whole), r.Shape.GPUs(), cost)
	}
	before := r.costOf(p, calendar.Interval{Start: r.Since, End: f.Window.Start})
	return quota.SpendOf(f.Window, r.Shape.GPUs(), cost-before)
}

// chargedWindow is what is left of a window once its nodes are up.
func (r *Request) chargedWindow(w calendar.Interval) calendar.Interval {
	w.Start = w.Start.Add(r.Boot)
	return w
}

// costOf is what the request costs for a window.
func (r *Request) costOf(p *capacity.Pool, w calendar.Interval) money.MicroUSD {
	return Cost(*p, r.Shape, r.chargedWindow(w).Length())
}

func capFacts(c *Capped, ask quota.Ask, v *View) CapFacts {
	if c.Caps == nil {
		return CapFacts{}
	}
	return CapFacts{Capped: true, CapUsage: quota.MeasureCaps(*c.Caps, c.Spent, ask, v.Now)}
}

// findPlace appends the place of a request in the pool as it is to dst.
func (p *PoolView) findPlace(dst []int, r *Request, w calendar.Interval) ([]int, bool) {
	if len(r.At) > 0 {
		b := calendar.Booking{Interval: w, Slots: r.At, GPUs: r.Shape.PerNode, Short: r.Shape.Short}
		return append(dst, r.At...), p.Slots.FitsAll(b)
	}
	return p.Slots.FindInto(dst, r.Shape, w, p.Tiers)
}

// noteFull notes how full the pool is, and, unless it is to be brief, until when.
func noteFull(f *Facts, r *Request, p *PoolView, brief bool) {
	f.Room.Free = p.Slots.Free(f.Window)
	if brief {
		return
	}
	from := f.Window.Start
	if from.Before(f.Now) {
		from = f.Now
	}
	if start, _, ok := p.Slots.Earliest(r.Shape, f.Window.Length(), from, from.Add(horizon)); ok &&
		start.After(f.Window.Start) {
		f.Room.Earliest = start
	}
}
