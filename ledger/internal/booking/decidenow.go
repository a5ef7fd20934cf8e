package booking

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// decideWhere is decideNow for who does not claim certain places: nodes come last that the holder could not enter now,
// also after those that have to boot, and the nodes of a gang are near each other.
func decideWhere(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest) (txn.Verdict, calendar.Interval, error) {
	d, window, err := decideNow(tx, p, h, req)
	if err != nil || !d.Accepted() || req.explicit {
		return d, window, err
	}
	if req.job == nil { // those of jobs are left out
		shut, err := shutTo(p, h.org.ID, d.Slots) // of few nodes: to ask for all of them takes as long as to decide
		if err != nil {
			return d, window, err
		}
		if req.shutLast = len(shut) > 0; req.shutLast {
			if d, window, err = decideNow(tx, p, h, req); err != nil {
				return d, window, err
			}
		}
	}
	return bringTogether(tx, p, h, req, decided{d, window})
}

// decideNow decides on a request that starts now. An offer of a later start is
// taken by reserving, beside the tenant's own reservations, so it must hold with them, too.
func decideNow(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest) (txn.Verdict, calendar.Interval, error) {
	d, window, err := decideInstead(tx, p, h, req)
	if err != nil || d.Accepted() || len(req.own) == 0 {
		return d, window, err
	}
	d.Offers = slices.DeleteFunc(d.Offers, func(o admission.Offer) bool {
		if !o.Window.Start.After(tx.Now()) {
			return false
		}
		ask := admission.Request{Class: reservation.Guaranteed, Workload: req.workload, Shape: o.Shape,
			Window: o.Window}
		again := txn.JudgeRequest(ask, admissionView(tx, p, h, txn.TiersFor(p, o.Window, tx.Now(), tx.Config.Policy)))
		return !again.Accepted()
	})
	return d, window, nil
}

// decideInstead admits a request that starts now as if the tenant's own reservations were
// not there, preferring their places. A request that must wait for a boot is
// admitted again with the boot's time added, so that its lease is whole. A claim
// that has no room for that keeps what was booked, and loses of it what the boot
// takes. Which bookings give way may be what a request must wait for: each of the
// two is therefore asked again with the shares.
func decideInstead(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest) (txn.Verdict, calendar.Interval, error) {
	for _, r := range req.own {
		p.SetReservation(&r, nil)
		defer p.SetReservation(nil, &r)
	}
	for _, left := range restOfPart(tx, p, req) { // it is in nobody's way, and nobody's else
		p.SetReservation(nil, &left)
		defer p.SetReservation(&left, nil)
	}
	tiers := txn.TiersNow(p, req.own, req.explicit)
	if req.part != nil {
		tiers = calendar.Tiers{slotSetOf(p, req.part)}
	}
	if req.job != nil {
		var err error
		if tiers, err = tiersOfJob(p, *req.job, tiers); err != nil {
			return txn.Verdict{}, calendar.Interval{}, err
		}
	}
	if req.shutLast {
		var err error
		if tiers, err = putShutLast(p, h.org.ID, tiers); err != nil {
			return txn.Verdict{}, calendar.Interval{}, err
		}
	}
	if req.together != nil {
		front, back := splitTiers(p, tiers, *req.together)
		tiers = append(front, back...)
	}
	view := admissionView(tx, p, h, tiers)
	window := calendar.Interval{Start: tx.Now(), End: tx.Now().Add(req.lease)}
	ask := admission.Request{Class: reservation.Guaranteed, Workload: req.workload, Shape: req.shape, Window: window,
		Now: true}
	until := req.bookedUntil()
	d, window := decideBoot(tx, p, ask, view, until)
	if d.LeavesCalendar() {
		return d, window, nil
	}
	ranked, err := rankSpeculative(tx, p)
	if err != nil {
		return d, window, err
	}
	if view.Movable, view.Speculative = p.MovableBookings(), ranked; len(view.Movable) > 0 || len(ranked) > 0 {
		d, window = decideBoot(tx, p, ask, view, until)
	}
	if !d.Accepted() {
		d.Offers = acceptableOffers(tx, p, ask, view, d.Offers)
	}
	return d, window, nil
}

// bookedUntil is when the reservation ends that the request claims whole; zero if it claims none. A part of one is
// claimed for as long as the request says, or not at all.
func (r takeRequest) bookedUntil() time.Time {
	if !r.explicit || r.part != nil {
		return time.Time{}
	}
	return r.own[0].Window.End
}

// longestBoot is the time that a place has beside a lease that waits for a boot.
func longestBoot(tx *txn.Tx, p *txn.PoolTx) time.Duration {
	return p.Pool.AsPlanned(tx.Now()).Boot.P95() + tx.Config.Policy.Guard
}

// decideBoot admits a request that starts now, and again with a boot's time added
// if its nodes are not all ready, unless the request is for what is booked until
// then and there is no room for more. Of a request that is refused, it offers what
// either of the two would.
func decideBoot(tx *txn.Tx, p *txn.PoolTx, ask admission.Request, view admission.View, until time.Time) (
	txn.Verdict, calendar.Interval) {
	warm := txn.JudgeRequest(ask, view)
	if warm.Accepted() && allReady(p, warm.Slots) {
		return warm, ask.Window
	}
	boot := longestBoot(tx, p)
	long := ask
	long.Window.End, long.Boot = ask.Window.End.Add(boot), boot
	view.Pool.Timers.MaxLease += boot
	cold := txn.JudgeRequest(long, view)
	if warm.Accepted() && cold.Accepted() {
		return cold, long.Window
	}
	if warm.Accepted() && cold.OnlyCapacity() && !ask.Window.End.After(until) {
		return warm, ask.Window
	}
	offers := warm.Offers
	for _, o := range cold.Offers {
		o.Window.End = o.Window.End.Add(-boot)
		o.Cost = admission.Cost(p.Pool.Pool, o.Shape, o.Window.Length())
		if !slices.Contains(offers, o) {
			offers = append(offers, o)
		}
	}
	if warm.Accepted() {
		warm = cold
	}
	warm.Offers = offers
	return warm, ask.Window
}

// acceptableOffers keeps the offers that would be accepted if they were taken at once: an
// offer to begin now may have to wait for a boot, too.
func acceptableOffers(tx *txn.Tx, p *txn.PoolTx, ask admission.Request, view admission.View,
	offers []admission.Offer) []admission.Offer {
	return slices.DeleteFunc(offers, func(o admission.Offer) bool {
		if o.Window.Start.After(tx.Now()) {
			return false
		}
		if o.Window.Length() < time.Second {
			return true
		}
		ask.Shape, ask.Window = o.Shape, o.Window
		d, _ := decideBoot(tx, p, ask, view, time.Time{})
		return !d.Accepted()
	})
}
