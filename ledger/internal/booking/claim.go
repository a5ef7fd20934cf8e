package booking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Claim takes over one reservation of the actor's organization.
//
// A claim costs what was booked, and at most the early part more: it is accepted
// from the pool's lead before the window on, which is when its nodes begin to be
// warmed, and its lease ends with the window, or lasts as long as the window does
// if less than that is asked for. Zero is to the window's end, and no name the
// reservation's. Anything else is
// a *RefusedError, whose offers say when it may be claimed, and what may be
// allocated until then beside the reservation.
func (l Booking) Claim(ctx context.Context, actor ledger.Actor, reservationID string, lease time.Duration,
	name string) (allocation.Allocation, error) {
	var out allocation.Allocation
	err := l.InGroup(ctx, actor, &ledger.LockHint{Reservation: reservationID}, func(tx *txn.Tx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		p, r, err := findReservation(tx, actor, reservationID)
		if err != nil {
			return err
		}
		if p == nil || !r.Placed() || r.OrganizationID != h.org.ID {
			return &ledger.StateError{Subject: r.ID, State: string(r.State()), Asked: "claim it"}
		}
		if p.Pool.Observed {
			return &ledger.ObservedPoolError{Pool: p.Pool.Name, Asked: "claim a reservation"}
		}
		if err := checkClaim(tx, p, h, r, lease); err != nil {
			return err
		}
		if lease == 0 {
			if lease, err = leaseToTheEnd(tx, p, h, r); err != nil {
				return err
			}
		}
		take := claimOf(r, lease)
		take.name = cmp.Or(name, r.Name)
		out, err = takeGPUs(tx, p, h, take)
		out.Version = p.CommittedVersion(out.ID, out.Version)
		return err
	})
	return out, err
}

// claimOf asks for the reservation's GPUs, for the lease.
func claimOf(r reservation.Reservation, lease time.Duration) takeRequest {
	return takeRequest{shape: r.Shape, workload: r.Workload, lease: lease,
		own: []reservation.Reservation{r}, explicit: true}
}

// leastLease is the shortest lease of a claim that comes when its window is
// almost over, unless the whole window is shorter.
const leastLease = time.Minute

// leaseToTheEnd is the lease of a claim that names none: to the end of its window, or a little longer where that is
// almost over and there is room.
func leaseToTheEnd(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation) (time.Duration, error) {
	lease, toEnd := claimedLease(tx, p, r), r.Window.End.Sub(tx.Now())
	if lease <= toEnd || toEnd < time.Second {
		return lease, nil
	}
	d, _, err := decideNow(tx, p, h, claimOf(r, lease))
	if err == nil && !d.Accepted() {
		lease = toEnd
	}
	return lease, err
}

// claimedLease is the longest lease of a claim that names none.
func claimedLease(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation) time.Duration {
	lease := max(r.Window.End.Sub(tx.Now()), min(leastLease, r.Window.Length()))
	return min(lease, p.Pool.Timers.MaxLease)
}

// claimFrom is when a reservation may be claimed first: when its nodes begin to
// be warmed.
func claimFrom(p *txn.PoolTx, r reservation.Reservation, now time.Time, policy plan.Policy) time.Time {
	return r.Window.Start.Add(-plan.Lead(p.Pool.AsPlanned(now).Boot, policy))
}

// checkClaim refuses a claim that comes too early, or asks for a longer lease than
// was reserved: either would cost more than the booking said.
func checkClaim(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation, lease time.Duration) error {
	from := claimFrom(p, r, tx.Now(), tx.Config.Policy)
	longest := max(claimedLease(tx, p, r), r.Window.Length())
	var reasons []admission.Reason
	if early := from.Sub(tx.Now()); early > 0 {
		reasons = append(reasons, admission.Reason{
			Code: admission.ClaimTooEarly, Unit: "seconds", Limit: int64(r.Window.Start.Sub(from) / time.Second),
			At: r.Window.Start, ClearsAt: from,
			Asked: int64(r.Window.Start.Sub(tx.Now()) / time.Second),
			Message: fmt.Sprintf("%s is booked from %s, and can be claimed from %s", r.ID,
				formatInstant(r.Window.Start), formatInstant(from)) + costOfClaimingNow(tx, p, r, lease),
		})
	}
	if lease > longest {
		reasons = append(reasons, admission.Reason{
			Code: admission.ClaimTooLong, Unit: "seconds", Limit: int64(longest / time.Second),
			Asked: int64(lease / time.Second),
			Message: fmt.Sprintf("%s is booked for %s: a lease of %s would cost %s instead of %s; claim it, and "+
				"extend the lease",
				r.ID, r.Window.Length(), lease, admission.Cost(p.Pool.Pool, r.Shape, lease), r.Cost),
		})
	}
	if len(reasons) == 0 {
		return nil
	}
	return refuseClaim(tx, p, h, r, from, lease, reasons)
}

// costOfClaimingNow says what a lease that begins now and ends with the window would
// cost. Whoever asks for a lease of their own choice is not asking for that one.
func costOfClaimingNow(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, lease time.Duration) string {
	if lease > 0 {
		return ""
	}
	return fmt.Sprintf(": a lease from now to its end would cost %s instead of %s",
		admission.Cost(p.Pool.Pool, r.Shape, r.Window.End.Sub(tx.Now())), r.Cost)
}

// refuseClaim offers the claim as it would be accepted, now or from its time on.
// Before that time it also offers the same GPUs at once, beside the reservation.
// A shorter lease than the window is offered as it was asked for.
func refuseClaim(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation, from time.Time,
	asked time.Duration, reasons []admission.Reason) error {
	now := tx.Now()
	lease := min(r.Window.Length(), p.Pool.Timers.MaxLease)
	if asked > 0 {
		lease = min(lease, asked)
	}
	d, _, err := decideNow(tx, p, h, takeRequest{shape: r.Shape, lease: lease, workload: r.Workload})
	if err != nil {
		return err
	}
	var offers []admission.Offer
	if from.After(now) {
		end := r.Window.End
		offers = append(offersBeside(tx, p, r, d, lease), offerClaim(p, r, from, endOfClaim(from, end, asked)),
			offerClaim(p, r, r.Window.Start, endOfClaim(r.Window.Start, end, asked)))
	} else if offers, err = offersOfClaim(tx, p, h, r, lease); err != nil {
		return err
	}
	d.RefuseFor(reasons)
	d.Offers = offers
	return txn.RefuseRequest(tx, p, h.org.ID, "allocation", d)
}

// offersOfClaim offers to claim the reservation now, to its end; and where others still have its GPUs, when its window
// begins, for as long as was asked.
func offersOfClaim(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation, asked time.Duration) (
	[]admission.Offer, error) {
	lease, err := leaseToTheEnd(tx, p, h, r)
	if err != nil {
		return nil, err
	}
	d, _, err := decideNow(tx, p, h, claimOf(r, lease))
	switch start := r.Window.Start; {
	case err != nil:
		return nil, err
	case d.Accepted():
		return []admission.Offer{offerClaim(p, r, tx.Now(), tx.Now().Add(lease))}, nil
	case start.After(tx.Now()):
		return []admission.Offer{offerClaim(p, r, start, endOfClaim(start, r.Window.End, asked))}, nil
	}
	return nil, nil
}

// endOfClaim is when a claim that begins at start ends: with the window, unless a
// shorter lease is asked for.
func endOfClaim(start, windowEnd time.Time, asked time.Duration) time.Time {
	if end := start.Add(asked); asked > 0 && end.Before(windowEnd) {
		return end
	}
	return windowEnd
}

// offerClaim offers to claim the reservation at start, with a lease until end.
func offerClaim(p *txn.PoolTx, r reservation.Reservation, start, end time.Time) admission.Offer {
	w := calendar.Interval{Start: start, End: end}
	return admission.Offer{Pool: p.Pool.ID, Shape: r.Shape, Window: w,
		Cost: admission.Cost(p.Pool.Pool, r.Shape, w.Length()), Reservation: r.ID}
}

// offersBeside are what can be allocated at once, by a decision that knows of the
// reservation: nothing that would push the reservation out.
func offersBeside(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, d txn.Verdict,
	lease time.Duration) []admission.Offer {
	switch {
	case slices.Contains(d.DisplacedIDs(), r.ID):
		return nil
	case d.Accepted():
		w := calendar.Interval{Start: tx.Now(), End: tx.Now().Add(lease)}
		return []admission.Offer{{Pool: p.Pool.ID, Shape: r.Shape, Window: w,
			Cost: admission.Cost(p.Pool.Pool, r.Shape, lease)}}
	}
	return slices.DeleteFunc(slices.Clone(d.Offers), func(o admission.Offer) bool {
		return o.Window.Start.After(tx.Now()) || o.Pool != p.Pool.ID
	})
}

// formatInstant renders a time that may be days away.
func formatInstant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
