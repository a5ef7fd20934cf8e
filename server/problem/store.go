package problem

import (
	"errors"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// Seconds after which it is worth trying again: a process that was paused is
// ended by PostgreSQL after five, a database that restarts takes about as long.
const (
	afterBusy = 2
	afterAway = 5
	afterFull = 30
)

// fromStore is the problem of a database that cannot do its part now; nil: it is
// something else.
func fromStore(err error) *Problem {
	switch {
	case errors.Is(err, ledger.ErrOutcomeUnknown):
		return retryLater(afterAway, contract.CodeUnavailable,
			"The connection was lost before the outcome was known: the request took effect completely, or not at all.").
			Request("Send it again with the same Idempotency-Key; without one, check first whether it took effect")
	case errors.Is(err, ledger.ErrBusy):
		return retryLater(afterBusy, contract.CodePoolBusy,
			"Another process holds the pool or the organization and did not release it in time. Nothing was changed.").
			Request("Send the request again")
	case errors.Is(err, ledger.ErrNotTried):
		return retryLater(afterBusy, contract.CodePoolBusy,
			"Earlier requests used up the time of the batch: this one was not tried, and nothing was booked for it.").
			Request("Send those that were not tried in another batch")
	case errors.Is(err, ledger.ErrReadOnly):
		return retryLater(afterAway, contract.CodeUnavailable,
			"The database is read-only, like a standby, and takes no writes. Nothing was changed; reads still work.").
			Fix("Wait, or have an operator check /readyz and the server's database URL", "")
	case errors.Is(err, ledger.ErrUnavailable):
		return retryLater(afterAway, contract.CodeUnavailable, "The database does not answer. Nothing was changed.").
			Request("Send the request again")
	}
	return nil
}

// fromFull tells that nothing can be written, and where room has to be made.
func fromFull(e *ledger.StorageFullError) *Problem {
	return retryLater(afterFull, contract.CodeStorageFull,
		"There is no space left. Nothing was changed; reads still work.").
		Fix("Have an operator free space at "+e.Where+"; the server then continues by itself", "")
}

func retryLater(seconds int, code, detail string) *Problem {
	p := New(code, detail)
	p.RetryAfter = seconds
	return p
}
