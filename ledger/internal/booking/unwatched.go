package booking

import (
	"cmp"
	"context"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// reasonUnwatched is why work has ended of which nobody will ever hear again.
const reasonUnwatched = "unwatched"

// EndUnwatched ends the work in the observed pools of a provisioner that watches them no
// more, as of when it was last seen, and returns how much there was.
func (l Booking) EndUnwatched(ctx context.Context, provisioner string) (ended int, err error) {
	for {
		some := 0
		err := l.InOwnTx(ctx, ledger.SystemActor("observer"), func(tx *txn.Tx) (err error) {
			some, err = endUnwatched(tx, provisioner)
			return err
		})
		if ended += some; err != nil || some == 0 {
			return ended, err
		}
	}
}

// endUnwatched ends as much of it as one transaction may.
func endUnwatched(tx *txn.Tx, provisioner string) (ended int, err error) {
	seen, err := tx.Port.Watched(provisioner)
	if err != nil {
		return 0, err
	}
	pools, err := ledger.ObservedPools(tx.Port, provisioner)
	if err != nil {
		return 0, err
	}
	for _, pool := range pools {
		p, err := tx.LockPool(pool.ID)
		if err != nil {
			return ended, fmt.Errorf("locking pool: %w", err)
		}
		work := txn.LiveWork(p)
		work = work[:min(len(work), mostAtOnce-ended)]
		if err := txn.EndWork(tx, p, work, cmp.Or(seen.BlindSince, tx.Now()), reasonUnwatched,
			"is watched no more by "+provisioner); err != nil {
			return ended, err
		}
		if ended += len(work); len(work) > 0 {
			tx.WakePlan(pool.ID)
		}
	}
	return ended, nil
}

// ReportBlind notes that a cluster could not be looked at. The first look that is complete
// forgets it.
func (l Booking) ReportBlind(ctx context.Context, provisioner string) error {
	return l.Store.InTx(ctx, func(tx ledger.Tx) error {
		seen, err := tx.Watched(provisioner)
		if err != nil || !seen.BlindSince.IsZero() {
			return err
		}
		seen.Provisioner, seen.BlindSince = provisioner, tx.Now()
		return tx.Save(ledger.Change{Watched: []ledger.Watched{seen}})
	})
}
