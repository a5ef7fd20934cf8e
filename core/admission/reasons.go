package admission

import (
	"fmt"
	"sort"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// startGrace forgives the time a request spends on its way.
const startGrace = time.Minute

func windowReasons(r Request, v View) []Reason {
	var reasons []Reason
	if message, ok := past(r, v.Now); ok {
		reasons = append(reasons, Reason{Code: WindowInPast, Unit: "seconds", Message: message,
			Asked: int64(r.Window.Start.Sub(v.Now) / time.Second)})
	}
	if limit := v.Pool.Timers.MaxLease; r.Window.Length() > limit {
		reasons = append(reasons, over(WindowTooLong, "seconds", int64(limit/time.Second), int64(r.Window.Length()/time.Second),
			fmt.Sprintf("pool %s allows windows of at most %s", v.Pool.Name, limit)))
	}
	return reasons
}

// past says why no part of the window can be booked any more.
func past(r Request, now time.Time) (string, bool) {
	switch {
	case !r.Window.Valid():
		return "the window ends before it begins", true
	case r.Now:
		return "", false
	case r.Window.Start.Before(now.Add(-startGrace)):
		return fmt.Sprintf("the window starts %s in the past", now.Sub(r.Window.Start).Round(time.Second)), true
	default:
		return "the window is over", !r.Window.End.After(now)
	}
}

func limitReasons(r Request, v View, cost gpu.MicroUSD) []Reason {
	ask := quota.Ask{Window: r.Window, Demand: quota.Demand(v.Pool, r.Shape), Spend: quota.SpendOf(r.Window, r.Shape.GPUs(), cost),
		Speculative: r.Class == reservation.Speculative}
	h := quota.Holdings{Limits: v.Limits, Committed: v.Committed, Guessed: v.Guessed, Cohort: v.Cohort}
	var reasons []Reason
	if ask.Speculative && v.Pool.Paused {
		reasons = append(reasons, Reason{Code: PrewarmPaused, Message: fmt.Sprintf("speculative pre-warming is paused in pool %s", v.Pool.Name)})
	}
	for _, found := range quota.Measure(h, ask).Violations() {
		reasons = append(reasons, limitReason(found))
	}
	for _, holder := range []struct {
		code   Code
		name   string
		capped Capped
	}{{KeyCapExceeded, "key", v.Key}, {UserCapExceeded, "user", v.User}} {
		if holder.capped.Caps == nil {
			continue
		}
		for _, found := range quota.MeasureCaps(*holder.capped.Caps, holder.capped.Spent, ask, v.Now).Violations() {
			reasons = append(reasons, capReason(holder.code, holder.name, found))
		}
	}
	return reasons
}

func over(c Code, unit string, limit, asked int64, message string) Reason {
	return Reason{Code: c, Unit: unit, Limit: limit, Asked: asked, Message: message}
}

func noHardware(r Request, p gpu.Pool) Reason {
	return over(NoMatchingHardware, "gpus", int64(p.PerNode*p.MaxNodes), int64(r.Shape.GPUs()),
		fmt.Sprintf("pool %s has at most %d nodes of %d GPUs; %s never fits", p.Name, p.MaxNodes, p.PerNode, r.Shape))
}

func noCapacity(r Request, v View) Reason {
	free := v.Slots.Free(r.Window)
	return over(CapacityExhausted, "gpus", int64(free), int64(r.Shape.GPUs()),
		fmt.Sprintf("%d GPUs of pool %s are free during the whole window; %s has no place", free, v.Pool.Name, r.Shape))
}

// offers tries what people change first: a later start, then a smaller size.
// Each is checked by Decide's own rules, so that it succeeds when taken at once.
func offers(r Request, v View) []Offer {
	var found []Offer
	if fitsEver(r.Shape, v.Pool) && r.Window.Valid() {
		if o, ok := later(r, v); ok {
			found = append(found, o)
		}
	}
	if o, ok := smaller(r, v); ok {
		found = append(found, o)
	}
	return found
}

func later(r Request, v View) (Offer, bool) {
	from := r.Window.Start
	if from.Before(v.Now) {
		from = v.Now
	}
	until := from.Add(horizon)
	for range 8 {
		start, _, ok := v.Slots.Earliest(r.Shape, r.Window.Length(), from, until)
		if !ok {
			return Offer{}, false
		}
		try := r
		try.Now = false
		try.Window = calendar.Interval{Start: start, End: start.Add(r.Window.Length())}
		if admissible(try, v) {
			return Offer{Shape: r.Shape, Window: try.Window}, true
		}
		if from, ok = v.Committed.Next(start); !ok {
			return Offer{}, false
		}
	}
	return Offer{}, false
}

// smaller looks for the largest number of GPUs below the asked one that has a
// place. Limits only bind harder as the number grows, so their bound is found
// by halving; a place is then a question to the counted rooms, not to the
// calendar, so that a request for a whole data centre is answered at once.
func smaller(r Request, v View) (Offer, bool) {
	if len(windowReasons(r, v)) > 0 {
		return Offer{}, false
	}
	try := func(n int) Request {
		q := r
		q.Shape, _ = gpu.ShapeFor(n, v.Pool.PerNode)
		return q
	}
	most := min(r.Shape.GPUs()-1, v.Pool.PerNode*v.Pool.MaxNodes)
	allowed := sort.Search(max(0, most), func(i int) bool {
		q := try(i + 1)
		return len(limitReasons(q, v, Cost(v.Pool, q.Shape, q.Window.Length()))) > 0
	})
	rooms := v.Slots.Rooms(r.Window, v.Rank)
	for n := allowed; n > 0; n-- {
		q := try(n)
		if q.Shape.PerNode < len(rooms) && rooms[q.Shape.PerNode] >= q.Shape.Nodes && admissible(q, v) {
			return Offer{Shape: q.Shape, Window: q.Window}, true
		}
	}
	return Offer{}, false
}

func admissible(r Request, v View) bool {
	if !fitsEver(r.Shape, v.Pool) || len(windowReasons(r, v)) > 0 {
		return false
	}
	if len(limitReasons(r, v, Cost(v.Pool, r.Shape, r.Window.Length()))) > 0 {
		return false
	}
	_, ok := v.Slots.Find(r.Shape, r.Window, v.Rank)
	return ok
}
