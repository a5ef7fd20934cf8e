package work

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// NoteWorker notes that a worker is there for as long as life from now on; a life of zero
// says that it has ended. Seen and Until of w are not read.
func (l Tasks) NoteWorker(ctx context.Context, w ledger.Worker, life time.Duration) error {
	return l.Store.InTx(ctx, func(tx ledger.Tx) error { return tx.NoteWorker(w, life) })
}
