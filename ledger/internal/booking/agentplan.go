package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// wish is one reservation that a desired plan comes down to: a window's GPUs
// are cut into whole nodes and a rest, so that each part can be claimed alone.
type wish struct {
	window int // index into the outcomes
	shape  capacity.Shape
	span   calendar.Interval
}

// SetDemand makes the actor's reservations in a pool what the plan says: it keeps
// those that serve a window already, shifting their ends, cancels the rest and
// places what is missing. A window that gets no place does not stop the others.
func (l Booking) SetDemand(ctx context.Context, actor ledger.Actor, want ledger.Demand) (
	[]ledger.WindowOutcome, error) {
	if err := want.Check(); err != nil {
		return nil, err
	}
	var outcomes []ledger.WindowOutcome
	err := l.InGroup(ctx, actor, &ledger.LockHint{Pool: want.Pool}, func(tx *txn.Tx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		pools, err := lockCandidates(tx, ledger.PoolNeeds{Pool: want.Pool})
		if err != nil {
			return err
		}
		outcomes, err = applyDemand(tx, pools[0], h, want.Windows)
		return err
	})
	return outcomes, err
}

func applyDemand(tx *txn.Tx, p *txn.PoolTx, h *holding, windows []ledger.DemandWindow) ([]ledger.WindowOutcome, error) {
	outcomes := make([]ledger.WindowOutcome, len(windows))
	for i, w := range windows {
		outcomes[i].Window = w
	}
	mine := ownReservations(tx, p)
	var missing []wish
	for _, w := range wishesOf(windows, p.Pool.Pool) {
		i := matchReservation(mine, w)
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		r := keepReservation(tx, p, h, mine[i], w)
		mine = slices.Delete(mine, i, i+1)
		o := &outcomes[w.window]
		o.Kept++
		o.Reservations = append(o.Reservations, r.ID)
	}
	if err := cancelUnwanted(tx, p, mine); err != nil {
		return nil, err
	}
	for _, w := range missing {
		if err := placeWish(tx, p, h, w, &outcomes[w.window]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// ownReservations lists the actor's live reservations in the pool, the most valuable to
// keep first.
func ownReservations(tx *txn.Tx, p *txn.PoolTx) []reservation.Reservation {
	worth := map[reservation.State]int{reservation.Ready: 0, reservation.Warming: 1, reservation.Booked: 2}
	var mine []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.MadeBy == tx.Actor.KeyID && r.Origin == reservation.FromAgent && r.Placed() {
			mine = append(mine, r)
		}
	}
	slices.SortFunc(mine, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(worth[a.State()], worth[b.State()]), a.Window.Start.Compare(b.Window.Start),
			cmp.Compare(a.ID, b.ID))
	})
	return mine
}

func wishesOf(windows []ledger.DemandWindow, pool capacity.Pool) []wish {
	var list []wish
	for i, w := range windows {
		span := calendar.Interval{Start: w.Start, End: w.End}
		for left := w.GPUs; left > 0; left -= pool.PerNode {
			shape := pool.Whole(capacity.Shape{Nodes: 1, PerNode: min(left, pool.PerNode)})
			list = append(list, wish{window: i, shape: shape, span: span})
		}
	}
	slices.SortStableFunc(list, func(a, b wish) int { return a.span.Start.Compare(b.span.Start) })
	return list
}

// matchReservation finds a reservation that serves the wish already: the same shape, the
// same start or both begun, and windows that meet.
func matchReservation(mine []reservation.Reservation, w wish) int {
	return slices.IndexFunc(mine, func(r reservation.Reservation) bool {
		return r.Shape == w.shape && r.Window.Overlaps(w.span) && !w.span.Start.Before(r.Window.Start)
	})
}

// keepReservation shifts a kept reservation's end to the wish's, if its place and the limits
// allow it: what is added counts where the reservation does. The stated probability stays: its
// outcome is scored against it.
func keepReservation(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation, w wish) reservation.Reservation {
	next := r
	next.Window.End = w.span.End
	if r.Window.End.Equal(next.Window.End) {
		return r
	}
	if next.Window.End.After(r.Window.End) {
		view := admissionView(tx, p, h, nil)
		d := admission.Decide(admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Now: true,
			Window: calendar.Interval{Start: r.Window.End, End: next.Window.End}, Since: r.Window.Start,
			At: r.Slots, Prolongs: true}, view)
		if !d.Accepted() || next.Window.Length() > p.Pool.Timers.MaxLease {
			return r
		}
	}
	next.Cost = admission.Cost(p.Pool.Pool, next.Shape, next.Window.Length())
	p.PutReservation(next)
	tx.WakePlan(p.Pool.ID)
	return next
}

// cancelUnwanted cancels the reservations that the plan no longer asks for.
func cancelUnwanted(tx *txn.Tx, p *txn.PoolTx, rest []reservation.Reservation) error {
	for _, r := range rest {
		if _, err := tx.StepReservation(p, r, reservation.Cancel, "replanned", "no longer expected"); err != nil {
			return fmt.Errorf("cancelling %s: %w", r.ID, err)
		}
		MarkIdle(tx, p, r.Slots)
		tx.WakePlan(p.Pool.ID)
	}
	return nil
}

// placeWish places one wish, or notes why it got no place.
func placeWish(tx *txn.Tx, p *txn.PoolTx, h *holding, w wish, o *ledger.WindowOutcome) error {
	r, err := reserveIn(tx, p, h, ledger.ReserveRequest{
		GPUs: w.shape.GPUs(), Window: w.span, Probability: o.Window.Probability, ReasonCode: o.Window.ReasonCode,
	})
	if re, ok := errors.AsType[*ledger.RefusedError](err); ok {
		tx.JournalRefusal(err)
		o.Refused = re
		return nil
	}
	if err != nil {
		return err
	}
	o.Placed++
	o.Reservations = append(o.Reservations, r.ID)
	return nil
}
