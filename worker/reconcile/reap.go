package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/forewarm/forewarm/ledger/verbs"
)

// Reaper makes the tasks of workers that fell silent ready again. It may run on
// every instance. Make one with NewReaper.
type Reaper struct {
	ledger *verbs.Ledger
	every  time.Duration
	log    *slog.Logger
}

// NewReaper returns a reaper that looks this often; zero means every second. A
// nil logger means slog.Default().
func NewReaper(l *verbs.Ledger, every time.Duration, log *slog.Logger) *Reaper {
	if every == 0 {
		every = time.Second
	}
	if log == nil {
		log = slog.Default()
	}
	return &Reaper{ledger: l, every: every, log: log}
}

// Step frees the tasks whose lease has ended and returns how many there were.
func (r *Reaper) Step(ctx context.Context) (int, error) {
	freed, err := r.ledger.Reap(ctx)
	if err != nil {
		return 0, fmt.Errorf("freeing the tasks of silent workers: %w", err)
	}
	if freed > 0 {
		r.log.WarnContext(ctx, "freed the tasks of silent workers", "tasks", freed)
	}
	return freed, nil
}

// Run steps until ctx ends. Failures are logged: the next step tries again.
func (r *Reaper) Run(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := r.Step(ctx); err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "reaper step failed", "error", err)
		}
	}
}
