package booking

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// admit decides a request. Only where the calendar as it is has no place it
// looks, at greater cost, for bookings that could be moved so that nobody has to
// give way, for the shares by which some give way before others, and for other
// pools to offer.
func admit(tx *txn.Tx, p *txn.PoolTx, ask admission.Request, view admission.View) (txn.Verdict, error) {
	d := txn.JudgeRequest(ask, view)
	if d.LeavesCalendar() {
		return d, nil
	}
	view.Movable = p.MovableBookings()
	if !view.Brief {
		view.Others = otherPools(tx, p)
	}
	if len(view.Movable) == 0 && len(view.Others) == 0 && !d.MakesRoom() {
		return d, nil
	}
	return admitDisplacing(tx, p, ask, view, d)
}

// admitDisplacing decides a request that d, without the shares, found no free place for.
func admitDisplacing(tx *txn.Tx, p *txn.PoolTx, ask admission.Request, view admission.View, d txn.Verdict) (
	txn.Verdict, error) {
	if d.MakesRoom() {
		ranked, err := rankSpeculative(tx, p)
		if err != nil {
			return d, err
		}
		view.Speculative = ranked
	}
	return txn.JudgeRequest(ask, view), nil
}

// otherPools are the pools with GPUs of the same model, which a refusal may offer
// instead. They are not locked: what is offered is there at this moment.
func otherPools(tx *txn.Tx, p *txn.PoolTx) []admission.PoolView {
	var found []admission.PoolView
	for _, id := range txn.SortedKeys(tx.Cache.Pools) {
		d := tx.Cache.Pools[id]
		if _, known := tx.Revisions[id]; !known || !d.Row.DeletedAt.IsZero() || id == p.Pool.ID ||
			!strings.EqualFold(d.Definition.Model, p.Pool.Model) {
			continue
		}
		soon, _ := d.Preferred.SlotTiers()
		found = append(found, admission.PoolView{Pool: d.Definition, Slots: d.Places, Tiers: soon, Used: d.Split})
	}
	return found
}

// makeWay moves what a decision moves, in its order, and cancels what it pushes
// out. A promise is of GPUs, not of slots: that it was moved is nobody's news.
func makeWay(tx *txn.Tx, p *txn.PoolTx, d txn.Verdict) error {
	for _, m := range d.Moves {
		r, ok := p.FindReservation(m.ID)
		if !ok {
			return fmt.Errorf("making way: %s is not in the pool", m.ID)
		}
		r.Slots = m.To
		p.PutReservation(r)
	}
	return displaceReservations(tx, p, d.DisplacedIDs(), d)
}
