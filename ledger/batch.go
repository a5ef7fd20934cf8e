package ledger

import (
	"github.com/forewarm/forewarm/core/reservation"
)

// MaxBatch is the most requests one batch may hold.
const MaxBatch = 10_000

// Item is one request of a batch. One that is Invalid already is not tried.
type Item[R any] struct {
	Request R
	Invalid error
}

// BatchItem is one request of a batch of reservations.
type BatchItem = Item[ReserveRequest]

// Outcome is what became of one request of a batch: a reservation, or why there
// is none (*InvalidError, *RefusedError, ErrNotTried, or what its Item said).
type Outcome struct {
	Reservation reservation.Reservation
	Err         error
}

// Bounds of writing ahead: a batch of at least large requests has a transaction
// of its own, and its rows are written in parts of ahead, each while the next
// part is decided. Otherwise the database waits for the ledger, and then the
// ledger for the database.
const (
	Large = 500
	Ahead = 250
)

// BatchLockHint says what a batch will lock, for Once: its pool, if it has one.
func BatchLockHint(batch []BatchItem) *LockHint {
	return lockHintOf(batch, func(r ReserveRequest) string { return r.Pool })
}

func lockHintOf[R any](batch []Item[R], poolOf func(R) string) *LockHint {
	pool := poolOf(batch[0].Request)
	for _, item := range batch {
		if poolOf(item.Request) != pool {
			return nil
		}
	}
	if pool == "" {
		return nil
	}
	return &LockHint{Pool: pool, Alone: len(batch) >= Large}
}
