package sqlledger

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// horizon knows how far PostgreSQL's journal is settled: up to which number no open
// transaction can still add an event.
//
// A transaction draws the numbers of its events before it commits, so one with
// smaller numbers may commit later. But it had a transaction id when it drew them
// (see the table's definition), and that id is smaller than any id made after the
// largest number was read. Once all transactions with smaller ids are over, every
// event up to that number is there or never will be.
type horizon struct {
	busy sync.Mutex // held by the one who looks; nobody waits for it, once it is known

	mu         sync.Mutex
	sure, next horizonMark
}

// horizonMark says that every number up to seq was drawn by a transaction with an
// id below xid.
type horizonMark struct{ seq, xid int64 }

// settledSQL holds for events that none with a smaller number can still precede, as
// far as the statement's own snapshot can see.
const (
	xminSQL    = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)"
	settledSQL = "(seq <= ? AND ? < " + xminSQL + " OR seq <= ? AND ? < " + xminSQL + ")"
)

// lookTimeout keeps a dead connection from holding up everybody's looks.
const lookTimeout = 5 * time.Second

// settledMarks looks how far the journal is settled, and returns the arguments of
// settledSQL.
func (s *Store) settledMarks(ctx context.Context) ([]any, error) {
	h := &s.horizon
	if h.claimLook() {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		err := h.advanceMark(ctx, s.writer)
		cancel()
		h.busy.Unlock()
		if err != nil {
			return nil, wrapError("reading how far the journal is settled", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return []any{h.sure.seq, h.sure.xid, h.next.seq, h.next.xid}, nil
}

// claimLook reports whether the caller is to look, with busy held. Before the first look
// is over there is nothing to go by: everybody waits for it.
func (h *horizon) claimLook() bool {
	h.mu.Lock()
	known := h.next != horizonMark{}
	h.mu.Unlock()
	if known {
		return h.busy.TryLock()
	}
	h.busy.Lock()
	return true
}

// advanceMark moves on to the next mark once the last one is reached.
func (h *horizon) advanceMark(ctx context.Context, db *sql.DB) error {
	h.mu.Lock()
	sure, next := h.sure, h.next
	h.mu.Unlock()
	if next != sure {
		var xmin int64
		if err := db.QueryRowContext(ctx, "SELECT "+xminSQL).Scan(&xmin); err != nil {
			return err
		}
		if xmin <= next.xid {
			return nil
		}
		sure = next
	}
	if err := db.QueryRowContext(ctx, "SELECT last_value FROM events_seq_seq").Scan(&next.seq); err != nil {
		return err
	}
	if next.seq != sure.seq { // the id must be younger than the number
		if err := db.QueryRowContext(ctx,
			"SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)").Scan(&next.xid); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.sure, h.next = sure, next
	h.mu.Unlock()
	return nil
}
