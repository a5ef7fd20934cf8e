package ledger

import (
	"fmt"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/reservation"
)

// leavesCalendar reports whether the verdict accepts the request into the calendar as
// it is.
func (v verdict) leavesCalendar() bool { return v.Accepted() && len(v.Displaced) == 0 }

// admit decides a request. Only where the calendar as it is has no place it
// looks, at greater cost, for bookings that could be moved so that nobody has to
// give way, for the shares by which some give way before others, and for other
// pools to offer.
func admit(tx *groupTx, p *poolTx, ask admission.Request, view admission.View) (verdict, error) {
	d := judgeRequest(ask, view)
	if d.leavesCalendar() {
		return d, nil
	}
	view.Movable = p.movableBookings()
	if !view.Brief {
		view.Others = otherPools(tx, p)
	}
	if len(view.Movable) == 0 && len(view.Others) == 0 && !d.makesRoom() {
		return d, nil
	}
	return admitDisplacing(tx, p, ask, view, d)
}

// admitDisplacing decides a request that d, without the shares, found no free place for.
func admitDisplacing(tx *groupTx, p *poolTx, ask admission.Request, view admission.View, d verdict) (verdict, error) {
	if d.makesRoom() {
		ranked, err := rankSpeculative(tx, p)
		if err != nil {
			return d, err
		}
		view.Speculative = ranked
	}
	return judgeRequest(ask, view), nil
}

// makesRoom reports whether room was made among bookings that give way. Whether
// that helps does not depend on their order, and so not on their shares.
func (v verdict) makesRoom() bool { return len(v.facts.Room.Candidates) > 0 }

// movableBookings lists the bookings that may be given other slots: those for which
// nothing has been warmed. The list is kept until a booking changes.
func (d *cachedPool) movableBookings() []string {
	if d.mobile == nil {
		d.mobile = []string{}
		for _, r := range d.reservations.rows {
			if r.State() == reservation.Booked {
				d.mobile = append(d.mobile, r.ID)
			}
		}
	}
	return d.mobile
}

// otherPools are the pools with GPUs of the same model, which a refusal may offer
// instead. They are not locked: what is offered is there at this moment.
func otherPools(tx *groupTx, p *poolTx) []admission.PoolView {
	var found []admission.PoolView
	for _, id := range sortedKeys(tx.cache.pools) {
		d := tx.cache.pools[id]
		if _, known := tx.revisions[id]; !known || !d.row.DeletedAt.IsZero() || id == p.Pool.ID ||
			d.def.Model != p.Pool.Model {
			continue
		}
		soon, _ := d.preferred.slotTiers()
		found = append(found, admission.PoolView{Pool: d.def, Slots: d.places, Tiers: soon, Used: d.split})
	}
	return found
}

// makeWay moves what a decision moves, in its order, and cancels what it pushes
// out. A promise is of GPUs, not of slots: that it was moved is nobody's news.
func makeWay(tx *groupTx, p *poolTx, d verdict) error {
	for _, m := range d.Moves {
		r, ok := p.findReservation(m.ID)
		if !ok {
			return fmt.Errorf("making way: %s is not in the pool", m.ID)
		}
		r.Slots = m.To
		p.putReservation(r)
	}
	return displaceReservations(tx, p, d.DisplacedIDs(), d)
}
