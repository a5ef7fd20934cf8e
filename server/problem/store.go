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
			"The database was lost while it committed: the request took effect whole, or not at all.").
			Request("Send it again with the same Idempotency-Key; without one, look first whether it took effect")
	case errors.Is(err, ledger.ErrBusy):
		return retryLater(afterBusy, contract.CodePoolBusy,
			"Another process holds the pool or the organization and did not release it in time. Nothing was changed.").
			Request("Send the request again")
	case errors.Is(err, ledger.ErrNotTried):
		return retryLater(afterBusy, contract.CodePoolBusy,
			"The requests before it used up the time of the batch: it was not tried, and nothing was booked for it.").
			Request("Send those that were not tried in another batch")
	case errors.Is(err, ledger.ErrReadOnly):
		return retryLater(afterAway, contract.CodeUnavailable,
			"The database takes no writes: it is read-only, as a standby is. Nothing was changed; reading goes on.").
			Fix("Wait, or have an operator look at /readyz and where the server's database URL leads", "")
	case errors.Is(err, ledger.ErrUnavailable):
		return retryLater(afterAway, contract.CodeUnavailable, "The database does not answer. Nothing was changed.").
			Request("Send the request again")
	}
	return nil
}

// fromFull tells that nothing can be written, and where room has to be made.
func fromFull(e *ledger.StorageFullError) *Problem {
	return retryLater(afterFull, contract.CodeStorageFull,
		"There is no room to write. Nothing was changed; reading goes on.").
		Fix("Have an operator free space at "+e.Where+"; the server goes on by itself", "")
}

func retryLater(seconds int, code, detail string) *Problem {
	p := New(code, detail)
	p.RetryAfter = seconds
	return p
}
