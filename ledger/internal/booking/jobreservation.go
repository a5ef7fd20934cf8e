package booking

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ReservedFor returns a job as it is in what its organization has reserved: it starts when that begins, with the
// GPUs of it, and is over when that ends. Its pool, which is locked, is the reservation's.
func ReservedFor(tx *txn.Tx, req ledger.AllocateRequest, j job.Job) (*txn.PoolTx, job.Job, error) {
	h, err := readHolding(tx)
	if err != nil {
		return nil, j, err
	}
	p, r, err := findReservation(tx, tx.Actor, j.Reservation)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, j, &ledger.InvalidError{Field: "reservation_id",
			Rule: "must be a reservation: there is none of that id, or this key may not see it"}
	}
	if err != nil {
		return nil, j, err
	}
	if p == nil || !r.Placed() || r.OrganizationID != h.org.ID {
		return nil, j, &ledger.StateError{Subject: r.ID, State: string(r.State()), Asked: "run a job in it"}
	}
	if p.Pool.Observed {
		return nil, j, &ledger.ObservedPoolError{Pool: p.Pool.Name, Asked: "run a job in a reservation"}
	}
	if err := checkFitsReservation(p, req, r); err != nil {
		return nil, j, err
	}
	j.PoolID, j.Shape, j.Workload = p.Pool.ID, r.Shape, r.Workload
	if r.Window.Start.After(j.NotBefore) {
		j.NotBefore = r.Window.Start
	}
	begins := j.NotBefore
	if begins.Before(tx.Now()) {
		begins = tx.Now()
	}
	longest := r.Window.End.Sub(begins) - j.Grace - jobMargin
	if j.MaxRuntime == 0 {
		j.MaxRuntime = longest.Truncate(time.Second)
	}
	if longest < time.Second || j.MaxRuntime > longest {
		return nil, j, &ledger.InvalidError{Field: "max_runtime_seconds", Rule: fmt.Sprintf("must let the job end before "+
			"its reservation does, at %s, of which %s go to its grace and its start: it has %s left",
			formatInstant(r.Window.End), j.Grace+jobMargin, max(longest.Truncate(time.Second), 0)),
			Fix: "give a shorter max runtime, or reserve for longer"}
	}
	return p, j, checkCheckpoint(j)
}

// checkFitsReservation refuses a request for something else than what is reserved.
func checkFitsReservation(p *txn.PoolTx, req ledger.AllocateRequest, r reservation.Reservation) error {
	if req.Pool != "" && req.Pool != p.Pool.ID && req.Pool != p.Pool.Name {
		return &ledger.InvalidError{Field: "pool", Rule: fmt.Sprintf("must be left out, or be the reservation's, %s",
			p.Pool.Name)}
	}
	if req.Model != "" && !strings.EqualFold(req.Model, p.Pool.Model) {
		return &ledger.InvalidError{Field: "model", Rule: fmt.Sprintf("must be left out, or be the reservation's, %s",
			p.Pool.Model)}
	}
	if req.GPUs == 0 && req.Layout == (capacity.Layout{}) {
		return nil
	}
	if shape, ok := p.Pool.ShapeOf(req.Layout, req.GPUs); !ok || shape != r.Shape {
		return &ledger.InvalidError{Field: "gpus", Rule: fmt.Sprintf("must be left out, or be what is reserved, %d in all "+
			"on %s", r.Shape.GPUs(), phrase.Count(r.Shape.Nodes, "node"))}
	}
	return nil
}

// ErrReservationOver says that what a job was to run in is not there any more.
var ErrReservationOver = errors.New("the reservation in which the job was to run is over")

// reservedTake is what a job asks for that runs in a reservation, or fails with ErrReservationOver.
func reservedTake(p *txn.PoolTx, req takeRequest, j job.Job) (takeRequest, error) {
	r, ok := p.FindReservation(j.Reservation)
	if !ok || !r.Placed() || r.OrganizationID != j.OrganizationID {
		return req, ErrReservationOver
	}
	req.own, req.explicit, req.workload = []reservation.Reservation{r}, true, r.Workload
	return req, nil
}
