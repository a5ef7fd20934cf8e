package admission

import (
	"slices"
	"sort"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// probeID is the calendar's name for the request while its effects are looked
// at; no booking's id begins with it.
const probeID = "\x00request"

// makeRoom looks for a place among the speculative bookings: as few of them as
// it takes, in the order in which they give way, are taken out of the calendar,
// and those that turn out to fit beside the request are put back, the last in
// that order first. None of the others has a place then: the set is minimal. A
// request that has no place even without all of them displaces none.
func makeRoom(f *Facts, r *Request, v *View) {
	p := &v.PoolView
	var inTheWay []Speculative
	for _, g := range p.Speculative {
		if g.Interval.Overlaps(f.Window) {
			inTheWay = append(inTheWay, g)
		}
	}
	sortYielding(inTheWay)
	out := 0 // so many are out of the calendar now
	fits := func(n int) bool {
		for ; out < n; out++ {
			p.Slots.Remove(inTheWay[out].ID)
		}
		for ; out > n; out-- {
			p.Slots.Force(inTheWay[out-1].Booking)
		}
		_, ok := p.findPlace(nil, r, f.Window)
		return ok
	}
	defer func() {
		for ; out > 0; out-- {
			p.Slots.Force(inTheWay[out-1].Booking)
		}
	}()
	if len(inTheWay) == 0 || !fits(len(inTheWay)) {
		return
	}
	fits(1 + sort.Search(len(inTheWay)-1, func(i int) bool { return fits(i + 1) }))
	f.Room.Slots, f.Room.Found = p.findPlace(v.Buf[:0], r, f.Window)
	f.Room.Candidates = placeRemoved(f, r, p, inTheWay[:out])
}

// placeRemoved puts back those of the removed bookings that have their place beside
// the request, says where the others would have one, and leaves all out again.
func placeRemoved(f *Facts, r *Request, p *PoolView, removed []Speculative) []Candidate {
	request := calendar.Booking{ID: probeID, Interval: f.Window, Slots: f.Room.Slots, GPUs: r.Shape.PerNode,
		Short: r.Shape.Short}
	p.Slots.Force(request)
	defer p.Slots.Remove(probeID)
	candidates := make([]Candidate, len(removed))
	for i := len(removed) - 1; i >= 0; i-- {
		g := &removed[i]
		candidates[i] = Candidate{ID: g.ID, Share: g.Share, Probability: g.Probability,
			Gives: !staysBeside(p.Slots, g.Booking, f.Room.Slots)}
	}
	for i := len(removed) - 1; i >= 0; i-- {
		if candidates[i].Gives {
			candidates[i].Offer = p.offerElsewhere(removed[i].Booking, f.Now)
		}
	}
	for i := range removed {
		p.Slots.Remove(removed[i].ID)
	}
	return candidates
}

// staysBeside puts a booking back on its slots if it shares none with the request, or
// has room beside it.
func staysBeside(s *calendar.Slots, b calendar.Booking, taken []int) bool {
	if !slices.ContainsFunc(b.Slots, func(slot int) bool { return slices.Contains(taken, slot) }) {
		s.Force(b)
		return true
	}
	return s.Place(b) == nil
}

// offerElsewhere finds the next place for a displaced booking: at the same time on
// other slots, or later. It leaves it booked there under its id, so that what
// the next one is offered is beside it.
func (p *PoolView) offerElsewhere(b calendar.Booking, now time.Time) *Offer {
	rest := b.Interval.From(now)
	shape := b.Shape()
	if p.Pool.Paused || !rest.Valid() {
		return nil
	}
	start, slots, ok := p.Slots.Earliest(shape, rest.Length(), rest.Start, now.Add(horizon))
	if !ok {
		return nil
	}
	w := calendar.Interval{Start: start, End: start.Add(rest.Length())}
	p.Slots.Force(calendar.Booking{ID: b.ID, Interval: w, Slots: slots, GPUs: b.GPUs, Short: b.Short})
	return &Offer{Pool: p.Pool.ID, Shape: shape, Window: w, Cost: Cost(p.Pool, shape, w.Length())}
}
