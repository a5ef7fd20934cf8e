package ledger

import (
	"github.com/forewarm/forewarm/core/reservation"
)

// MaxBatch is the most requests one batch may hold.
const MaxBatch = 10_000

// BatchItem is one request of a batch. One that is Invalid already is not tried.
type BatchItem struct {
	Request ReserveRequest
	Invalid error
}

// Outcome is what became of one request of a batch: a reservation, or why there
// is none (*InvalidError, *RefusedError, ErrNotTried, or what BatchItem said).
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
	for _, item := range batch {
		if item.Request.Pool != batch[0].Request.Pool {
			return nil
		}
	}
	uses := batch[0].Request.LockHint()
	if uses != nil {
		uses.Alone = len(batch) >= Large
	}
	return uses
}
