package api

import (
	"errors"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// waitEncoder encodes what is read with how much longer it waits. The first failure
// is kept in err.
type waitEncoder struct {
	waits *verbs.Waits
	err   error
}

func newWaitEncoder(a *API, r ledger.Reader) *waitEncoder {
	return &waitEncoder{waits: a.Ledger.Waits(r)}
}

func (w *waitEncoder) encodeAllocation(a allocation.Allocation) contract.Allocation {
	out := encodeAllocation(a)
	out.Wait = w.keepError(w.waits.Allocation(a))
	return out
}

func (w *waitEncoder) encodeReservation(r reservation.Reservation) contract.Reservation {
	out := encodeReservation(r)
	out.Wait = w.keepError(w.waits.Reservation(r))
	return out
}

func (w *waitEncoder) keepError(e *wait.Estimate, err error) *contract.WaitEstimate {
	w.err = errors.Join(w.err, err)
	return encodeWait(e)
}
