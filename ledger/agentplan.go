package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
)

// MaxWindows is the most windows one desired plan may hold.
const MaxWindows = 1000

// Demand is everything that an agent wants kept warm in a pool. It is a
// statement of the whole, not a list of changes: sending it twice changes
// nothing, and what it leaves out is given up.
type Demand struct {
	Pool    string // id or name
	Windows []DemandWindow
}

// DemandWindow is a wish for GPUs to be warm in [Start, End), beyond what is
// held already.
type DemandWindow struct {
	Start, End  time.Time
	GPUs        int
	Probability float64
	ReasonCode  string
}

// WindowOutcome says what became of one window.
type WindowOutcome struct {
	Window       DemandWindow
	Reservations []string
	Kept, Placed int           // reservations
	Refused      *RefusedError // why the rest got no place
}

// wish is one reservation that a desired plan comes down to: a window's GPUs
// are cut into whole nodes and a rest, so that each part can be claimed alone.
type wish struct {
	window int // index into the outcomes
	shape  capacity.Shape
	span   calendar.Interval
}

func (p Demand) checkDemand() error {
	if len(p.Windows) > MaxWindows {
		return &InvalidError{Field: "windows", Rule: fmt.Sprintf("may hold at most %d", MaxWindows)}
	}
	for i, w := range p.Windows {
		at := func(f string) string { return fmt.Sprintf("windows[%d].%s", i, f) }
		switch {
		case !w.Start.Before(w.End):
			return &InvalidError{Field: at("end"), Rule: "must be after start"}
		case w.GPUs < 1 || w.GPUs > MaxGPUs:
			return &InvalidError{Field: at("gpus"), Rule: fmt.Sprintf("must be between 1 and %d", MaxGPUs)}
		case w.Probability < 0 || w.Probability > 1 || w.Probability != w.Probability:
			return &InvalidError{Field: at("probability"), Rule: "must be between 0 and 1"}
		}
	}
	return nil
}

// SetDemand makes the actor's reservations in a pool what the plan says: it keeps
// those that serve a window already, shifting their ends, cancels the rest and
// places what is missing. A window that gets no place does not stop the others.
func (l Booking) SetDemand(ctx context.Context, actor Actor, want Demand) ([]WindowOutcome, error) {
	if err := want.checkDemand(); err != nil {
		return nil, err
	}
	var outcomes []WindowOutcome
	err := l.inGroup(ctx, actor, &LockHint{Pool: want.Pool}, func(tx *groupTx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		pools, err := lockCandidates(tx, poolNeeds{pool: want.Pool})
		if err != nil {
			return err
		}
		outcomes, err = applyDemand(tx, pools[0], h, want.Windows)
		return err
	})
	return outcomes, err
}

func applyDemand(tx *groupTx, p *poolTx, h *holding, windows []DemandWindow) ([]WindowOutcome, error) {
	outcomes := make([]WindowOutcome, len(windows))
	for i, w := range windows {
		outcomes[i].Window = w
	}
	mine := ownReservations(tx, p)
	var missing []wish
	for _, w := range wishesOf(windows, p.Pool.PerNode) {
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
func ownReservations(tx *groupTx, p *poolTx) []reservation.Reservation {
	worth := map[reservation.State]int{reservation.Ready: 0, reservation.Warming: 1, reservation.Booked: 2}
	var mine []reservation.Reservation
	for r := range p.reservations.allRows() {
		if r.MadeBy == tx.actor.KeyID && r.Origin == reservation.FromAgent && r.Placed() {
			mine = append(mine, r)
		}
	}
	slices.SortFunc(mine, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(worth[a.State()], worth[b.State()]), a.Window.Start.Compare(b.Window.Start),
			cmp.Compare(a.ID, b.ID))
	})
	return mine
}

func wishesOf(windows []DemandWindow, perNode int) []wish {
	var list []wish
	for i, w := range windows {
		span := calendar.Interval{Start: w.Start, End: w.End}
		for left := w.GPUs; left > 0; left -= perNode {
			list = append(list, wish{window: i, shape: capacity.Shape{Nodes: 1, PerNode: min(left, perNode)}, span: span})
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
func keepReservation(tx *groupTx, p *poolTx, h *holding, r reservation.Reservation, w wish) reservation.Reservation {
	next := r
	next.Window.End = w.span.End
	if r.Window.End.Equal(next.Window.End) {
		return r
	}
	if next.Window.End.After(r.Window.End) {
		view := admissionView(tx, p, h, onlyOn(r.Slots))
		d := admission.Decide(admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Now: true,
			Window: calendar.Interval{Start: r.Window.End, End: next.Window.End}, Since: r.Window.Start,
			Prolongs: true}, view)
		if !d.Accepted() || next.Window.Length() > p.Pool.Timers.MaxLease {
			return r
		}
	}
	next.Cost = admission.Cost(p.Pool.Pool, next.Shape, next.Window.Length())
	p.putReservation(next)
	tx.wakePlan(p.Pool.ID)
	return next
}

// cancelUnwanted cancels the reservations that the plan no longer asks for.
func cancelUnwanted(tx *groupTx, p *poolTx, rest []reservation.Reservation) error {
	for _, r := range rest {
		if _, err := tx.stepReservation(p, r, reservation.Cancel, "replanned", "no longer expected"); err != nil {
			return fmt.Errorf("cancelling %s: %w", r.ID, err)
		}
		markIdle(tx, p, r.Slots)
		tx.wakePlan(p.Pool.ID)
	}
	return nil
}

// placeWish places one wish, or notes why it got no place.
func placeWish(tx *groupTx, p *poolTx, h *holding, w wish, o *WindowOutcome) error {
	r, err := reserveIn(tx, p, h, ReserveRequest{
		GPUs: w.shape.GPUs(), Window: w.span, Probability: o.Window.Probability, ReasonCode: o.Window.ReasonCode,
	})
	if re, ok := errors.AsType[*RefusedError](err); ok {
		tx.journalRefusal(err)
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
