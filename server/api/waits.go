package api

import (
	"errors"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// waiting encodes what is read with how much longer it waits. The first failure
// is kept in err.
type waiting struct {
	waits *ledger.Waits
	err   error
}

func (a *API) waiting(r ledger.Reader) *waiting { return &waiting{waits: a.Ledger.Waits(r)} }

func (w *waiting) allocation(a allocation.Allocation) contract.Allocation {
	out := encodeAllocation(a)
	out.Wait = w.keep(w.waits.Allocation(a))
	return out
}

func (w *waiting) reservation(r reservation.Reservation) contract.Reservation {
	out := encodeReservation(r)
	out.Wait = w.keep(w.waits.Reservation(r))
	return out
}

func (w *waiting) keep(e *plan.Estimate, err error) *contract.WaitEstimate {
	w.err = errors.Join(w.err, err)
	return waitOf(e)
}
