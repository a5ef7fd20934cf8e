package report

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
)

// Shares reads the fair shares of a pool, by id or name, that the actor may see:
// an organization its own, an operator all. The largest comes first.
func (l Reporting) Shares(ctx context.Context, actor ledger.Actor, idOrName string) (ledger.Pool, []ledger.Share, error) {
	var pool ledger.Pool
	var out []ledger.Share
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		found, err := ledger.LivePool(r, idOrName)
		if err != nil {
			return err
		}
		state, err := r.PoolState(found.ID)
		if err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		pool = state.Pool
		out, err = booking.SharesOf(l.Engine, r, actor, state)
		return err
	})
	return pool, out, err
}
