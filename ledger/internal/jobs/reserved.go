package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// inReservation reports whether a job waits for what was reserved for it. Once it has had that, it waits as others do.
func inReservation(j job.Job) bool { return j.Reservation != "" && j.Attempt == 0 }

// reservationOf is what a job is to run in, while that is there.
func (q queue) reservationOf(j job.Job) (reservation.Reservation, bool) {
	i := slices.IndexFunc(q.pool.Reservations, func(r reservation.Reservation) bool {
		return r.ID == j.Reservation && r.Placed()
	})
	if i < 0 {
		return reservation.Reservation{}, false
	}
	return q.pool.Reservations[i], true
}

// checkNotTaken refuses a job for a reservation in which another one is to run: only one could.
func checkNotTaken(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
	if j.Reservation == "" {
		return nil
	}
	is, taken, err := txn.JobNaming(tx, p.Pool.ID, j.Reservation)
	if err != nil || !taken {
		return err
	}
	return &ledger.InvalidError{Field: "reservation_id", Rule: fmt.Sprintf("must be a reservation in which no other "+
		"job is to run, and %s is", is.ID), Fix: "cancel that job, or reserve for this one, too"}
}

// startReserved starts the jobs whose reservations have begun. Nobody stands before them.
func (l Jobs) startReserved(ctx context.Context, q queue) error {
	by := newSubmitters(ctx, l)
	_, err := (&turns{l: l, q: q, by: by}).startAll(ctx, withoutClaims(q.reserved))
	return err
}

// reservedUntil is when the first of the reservations ends that jobs are to run in; zero: there is none.
func (q queue) reservedUntil() (first time.Time) {
	for _, id := range q.reserved {
		if r, ok := q.reservationOf(q.jobs[id]); ok && (first.IsZero() || r.Window.End.Before(first)) {
			first = r.Window.End
		}
	}
	return first
}

// nextClaimable is when the first of the reservations begins that jobs may claim by themselves which wait now; zero:
// there is none.
func nextClaimable(q queue) (first time.Time) {
	for _, r := range q.pool.Reservations {
		if _, waits := q.weights[r.OrganizationID]; waits && r.Class == reservation.Guaranteed &&
			r.ForJobs != reservation.NoJobs {
			first = earliestOf(q.now, first, r.Window.Start)
		}
	}
	return first
}

// reservationOver is why a job fails whose reservation is not there any more.
func reservationOver(j job.Job) failure {
	return failure{j, job.End{Code: job.Unreserved, Reason: "reservation " + j.Reservation +
		", in which it was to run, is over, was cancelled, or has been claimed"}}
}
