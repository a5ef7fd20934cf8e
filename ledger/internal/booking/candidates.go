package booking

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// lockCandidates locks the pools that a request may use, in the order of their ids,
// and returns them with the cheapest first.
func lockCandidates(tx *txn.Tx, w ledger.PoolNeeds) ([]*txn.PoolTx, error) {
	if w.Pool != "" {
		p, err := tx.LivePool(w.Pool)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return nil, tenancy.ErrNoSuchPool(w.Pool)
		case err != nil:
			return nil, err
		}
		return []*txn.PoolTx{p}, w.UnmetBy(p.Pool)
	}
	all, err := tx.Port.Pools(ledger.Page{Limit: 500})
	if err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	fit, err := w.FilterPools(all)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(fit, func(a, b ledger.Pool) int { return cmp.Compare(a.ID, b.ID) })
	pools := make([]*txn.PoolTx, 0, len(fit))
	for _, found := range fit {
		p, err := tx.LockPool(found.ID)
		if err != nil {
			return nil, fmt.Errorf("locking pool: %w", err)
		}
		pools = append(pools, p)
	}
	slices.SortStableFunc(pools, func(a, b *txn.PoolTx) int { return cmp.Compare(gpuPrice(a), gpuPrice(b)) })
	return pools, nil
}

// gpuPrice is that of one GPU for one hour.
func gpuPrice(p *txn.PoolTx) money.MicroUSD {
	return p.Pool.Price / money.MicroUSD(max(p.Pool.PerNode, 1))
}
