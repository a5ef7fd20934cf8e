package fleet

import (
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// endCleaning ends the cleaning that has lasted long enough.
func endCleaning(tx *txn.Tx, p *txn.PoolTx) {
	if dirty, clean := plan.Cleaned(p.Cleaning, p.Pool.Timers.Cleaning, tx.Now()); len(clean) > 0 {
		p.SetCleaning(dirty)
	}
}
