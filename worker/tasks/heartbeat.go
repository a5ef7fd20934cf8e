package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// startHeartbeat extends the lease of a claim until stop is called. The returned
// context ends when the claim is lost: to another worker, or because the ledger
// could not be reached for as long as the lease lasts. A handler that goes on
// after that can do no harm to the ledger, but it should not call a provider.
func (r *Runner) startHeartbeat(ctx context.Context, g ledger.Guard) (held context.Context, stop func()) {
	held, lose := context.WithCancelCause(ctx)
	if r.cfg.Heartbeat == 0 {
		return held, func() { lose(nil) }
	}
	var beating sync.WaitGroup
	beating.Go(func() { r.extendPeriodically(held, lose, g) })
	return held, func() {
		lose(nil)
		beating.Wait()
	}
}

func (r *Runner) extendPeriodically(ctx context.Context, lose context.CancelCauseFunc, g ledger.Guard) {
	tick := time.NewTicker(r.cfg.Heartbeat)
	defer tick.Stop()
	for missed := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := r.extendLease(ctx, g)
		if err == nil {
			missed = 0
			continue
		}
		missed += r.cfg.Heartbeat
		if errors.Is(err, ledger.ErrFenced) || missed+r.cfg.Heartbeat > r.cfg.Lease {
			lose(fmt.Errorf("%w: extending its lease: %w", ledger.ErrFenced, err))
			return
		}
	}
}

// extendLease does not wait for a hung database: the lease runs out meanwhile.
func (r *Runner) extendLease(ctx context.Context, g ledger.Guard) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Heartbeat)
	defer cancel()
	return r.ledger.ExtendTask(ctx, g, r.cfg.Lease)
}
