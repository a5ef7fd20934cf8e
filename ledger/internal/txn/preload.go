package txn

import (
	"fmt"

	"github.com/forewarm/forewarm/ledger"
)

// preload reads the pools that a group names and the cache lacks before anything is locked: under the lock there is
// then little to read, and other servers, which may have just begun as well, wait only for that. What cannot be
// read here is read in the transaction, whose error counts.
func preload(l *Engine, group []*PendingTx) {
	if l.IsDryRun {
		return
	}
	for _, it := range group {
		if it.hint == nil || it.hint.Pool == "" {
			continue
		}
		if id, _ := l.Cache.findPoolOf(*it.hint); l.Cache.Pools[id] != nil {
			continue
		}
		_ = l.Store.Read(it.Ctx, func(r ledger.Reader) error {
			pool, err := r.Pool(it.hint.Pool)
			if err != nil {
				return fmt.Errorf("finding the pool: %w", err)
			}
			return loadAround(r, l.Cache, pool)
		})
	}
}

// loadAround loads a pool, and if there is nothing in the cache the other pools too: what an organization
// holds in them is about to be counted.
func loadAround(r ledger.Reader, b *poolCache, pool ledger.Pool) error {
	pools := []ledger.Pool{pool}
	if len(b.Pools) == 0 {
		var err error
		if pools, err = r.Pools(ledger.Page{Limit: mostPreloaded}); err != nil {
			return fmt.Errorf("listing pools: %w", err)
		}
	}
	for _, p := range pools {
		state, err := r.PoolState(p.ID)
		if err != nil {
			return fmt.Errorf("reading pool %s: %w", p.ID, err)
		}
		b.loadPool(state)
	}
	return nil
}

// mostPreloaded bounds how many pools are read before a transaction; the rest are read in it.
const mostPreloaded = 100
