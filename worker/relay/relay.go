// Package relay is the dispatcher: it moves task rows that are due from the
// ledger to the queue.
//
// A row that was sent stays ready until a worker claims it, and is sent again
// when the window has passed. So the relay may run on every instance, may lose
// what it took, and needs no help when the queue loses everything.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/worker/queue"
)

// group is how many dispatches of one attempt share an epoch: a lost message is
// sent twice more under the same name, which a queue that still holds it takes
// as the same, and then under a new one.
const group = 3

// Config tunes a Relay. The zero value is made whole by WithDefaults.
type Config struct {
	// Limit is how many rows one Step sends at most. Default 200.
	Limit int
	// Window is how long a row that was sent is left alone, so it is what the
	// loss of a message costs. Default 5 s.
	Window time.Duration
	// Every is how often Run looks for rows when nobody rings. Default 100 ms. Where
	// nobody else can have saved one it sleeps until the next is due, or is saved.
	Every time.Duration
	// Logger gets failures. Nil means slog.Default().
	Logger *slog.Logger
	// Metrics counts messages; nil counts nothing.
	Metrics *obs.Metrics
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	if c.Limit == 0 {
		c.Limit = 200
	}
	if c.Window == 0 {
		c.Window = 5 * time.Second
	}
	if c.Every == 0 {
		c.Every = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Relay sends due rows. It is safe for concurrent use. Make one with New.
type Relay struct {
	ledger *verbs.Ledger
	queue  queue.Queue
	cfg    Config
	bell   chan struct{} // holds a token when somebody rang
}

// New returns a relay from l to q.
func New(l *verbs.Ledger, q queue.Queue, cfg Config) *Relay {
	return &Relay{ledger: l, queue: q, cfg: cfg.WithDefaults(), bell: make(chan struct{}, 1)}
}

// Ring wakes Run, so that work that a verb of this process has just caused is
// sent at once. It never blocks.
func (r *Relay) Ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// Step sends the rows that are due, up to the limit, and returns how many the
// queue took. A message that the queue did not take is logged and counted and
// is no error: its row is sent again.
func (r *Relay) Step(ctx context.Context) (sent int, err error) {
	rows, err := r.ledger.Dispatch(ctx, r.cfg.Limit, r.cfg.Window)
	if err != nil {
		return 0, fmt.Errorf("dispatching tasks: %w", err)
	}
	for _, row := range rows {
		if r.sendTask(ctx, row) {
			sent++
		}
	}
	return sent, nil
}

func (r *Relay) sendTask(ctx context.Context, row ledger.Task) bool {
	err := r.queue.Enqueue(ctx, queue.Message{
		TaskID: row.ID, Kind: row.Kind, Attempt: row.Attempt, Epoch: row.Dispatches / group,
	})
	if err != nil && ctx.Err() != nil {
		return false // told to end
	}
	if err != nil {
		r.cfg.Metrics.Dispatch("failed")
		r.cfg.Logger.WarnContext(ctx, "the queue did not take a message; it is sent again",
			"task_id", row.ID, "kind", row.Kind, "again_in", r.cfg.Window, "error", err)
		return false
	}
	r.cfg.Metrics.Dispatch("sent")
	return true
}

// Run steps whenever somebody rings and at least as often as configured, until
// ctx ends. Failures are logged: the next step tries again.
func (r *Relay) Run(ctx context.Context) {
	for {
		saved, urgent := r.ledger.Store().TasksSaved(), r.ledger.Store().Urgent() // before the step: none is missed
		sent, err := r.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.cfg.Logger.ErrorContext(ctx, "relay step failed", "error", err)
		}
		if sent == r.cfg.Limit {
			continue // there may be more
		}
		if saved != nil && err == nil && sent == 0 {
			r.awaitTask(ctx, saved, urgent)
			continue
		}
		r.pause(ctx, r.cfg.Every, nil, urgent)
	}
}

// longestSleep is how long Run sleeps at most, so that a clock that was set, or a row
// that somebody wrote by hand, costs no more.
const longestSleep = 5 * time.Second

// awaitTask sleeps until a task is due or was saved. It returns no sooner than Run looks
// otherwise, unless somebody rings or it is urgent: every booking saves a task that is due later.
func (r *Relay) awaitTask(ctx context.Context, saved, urgent <-chan struct{}) {
	if r.pause(ctx, r.cfg.Every, nil, urgent) {
		return
	}
	next, left, err := r.ledger.UntilNextTask(ctx)
	switch {
	case err != nil:
		return // the next step says why
	case !next:
		left = longestSleep
	}
	if left > 0 {
		r.pause(ctx, min(left, longestSleep), saved, urgent)
	}
}

// pause waits, and returns true if somebody rang, it became urgent, or ctx ended, before.
func (r *Relay) pause(ctx context.Context, length time.Duration, saved, urgent <-chan struct{}) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-saved:
		return false
	case <-r.bell:
	case <-urgent:
	case <-ctx.Done():
	}
	return true
}
