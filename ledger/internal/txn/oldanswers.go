package txn

import (
	"context"
	"sync/atomic"

	"github.com/forewarm/forewarm/ledger"
)

// oldAnswers are those that were stored when answers to requests with idempotency keys were an organization's. A
// request that is repeated across the upgrade gets its own, and is not done twice. None is added, so that nobody looks
// for any once the last has lapsed.
type oldAnswers struct{ gone atomic.Bool }

// find looks for the old answer to a request.
func (a *oldAnswers) find(ctx context.Context, l *Engine, o ledger.Once, key ledger.ReplayKey) (
	found ledger.Replay, replayed bool, err error) {
	if a.gone.Load() || key.Owner == "" {
		return found, false, nil
	}
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		are, err := r.HasOldReplays()
		if err != nil || !are {
			a.gone.Store(err == nil)
			return err
		}
		found, replayed, err = o.ReplayOf(key, func(k ledger.ReplayKey) (ledger.Replay, bool, error) {
			return r.Replay(k.Owner, k.Route, k.Key)
		})
		return err
	})
	return found, replayed, err
}
