// Package standby lets workers work while the main queue is away.
//
// A queue only rings the bell: the tasks are rows. So a message that the queue
// does not take is delivered in this process, which found the row due and can
// claim it like anybody else. Work goes on without the queue, and what its loss
// costs is that each worker does what it finds itself.
package standby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

var _ queue.Queue = (*Queue)(nil)

// Main is the main queue. Its Run must fail where Ping does, and may then be
// called again.
type Main interface {
	queue.Queue
	// Ping asks for a sign of life.
	Ping(ctx context.Context) error
}

// Config tunes a Queue. The zero value is made whole by WithDefaults.
type Config struct {
	// Name is what the main queue is called in log lines. Default "the queue".
	Name string
	// Timeout is how long it may take to answer. Default 1 s.
	Timeout time.Duration
	// PingEvery is how often it is asked for a sign of life, give or take a half.
	// Default 1 s.
	PingEvery time.Duration
	// LogEvery is how often its absence is logged while it lasts. Default 1 min.
	LogEvery time.Duration
	// Clock measures durations. Nil means the machine's clock.
	Clock clock.Clock
	// Logger is told when it goes and when it comes. Nil means slog.Default().
	Logger *slog.Logger
	// Metrics tell whether it is there; nil tells nobody.
	Metrics *obs.Metrics
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = "the queue"
	}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	if c.PingEvery == 0 {
		c.PingEvery = time.Second
	}
	if c.LogEvery == 0 {
		c.LogEvery = time.Minute
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Queue is the main queue with a stand-in. Make one with New.
type Queue struct {
	main  Main
	spare *memqueue.Queue
	cfg   Config

	mu    sync.Mutex
	since time.Time // the main queue is away since then; zero: it is there
	said  time.Time // when that was logged last
	// refuses: it lives, and did not take a message. Only a message that it takes
	// ends that; trial says that the next one may try.
	refuses, trial bool
}

// New returns main with a stand-in. Closing it closes main.
func New(main Main, cfg Config) *Queue {
	cfg = cfg.WithDefaults()
	cfg.Metrics.Queue(true)
	return &Queue{main: main, spare: memqueue.New(cfg.Logger), cfg: cfg}
}

// Enqueue implements queue.Queue. What the main queue does not take in time
// waits in this process.
func (q *Queue) Enqueue(ctx context.Context, m queue.Message) error {
	if !q.worthTrying() {
		return q.spare.Enqueue(ctx, m)
	}
	try, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	err := q.main.Enqueue(try, m)
	switch {
	case err == nil:
		q.markFound(ctx)
		return nil
	case ctx.Err() != nil:
		return err
	}
	q.markLost(ctx, err, true)
	return q.spare.Enqueue(ctx, m)
}

// Run implements queue.Queue: it delivers what either queue has. Each works up to
// concurrency at once, so that nothing waits behind a queue that died.
func (q *Queue) Run(ctx context.Context, concurrency int, h queue.Handler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { q.watchMain(ctx) })
	beside.Go(func() { q.serveMain(ctx, concurrency, h) })
	err := q.spare.Run(ctx, concurrency, h)
	stop()
	beside.Wait()
	return err
}

// serveMain runs the main queue whenever it is there.
func (q *Queue) serveMain(ctx context.Context, concurrency int, h queue.Handler) {
	for ctx.Err() == nil {
		if q.pingMain(ctx) == nil {
			if err := q.main.Run(ctx, concurrency, h); err != nil && ctx.Err() == nil {
				q.markLost(ctx, err, false)
			}
		}
		q.pauseBetweenLooks(ctx)
	}
}

// watchMain asks the main queue for signs of life until ctx ends.
func (q *Queue) watchMain(ctx context.Context) {
	for ctx.Err() == nil {
		_ = q.pingMain(ctx)
		q.pauseBetweenLooks(ctx)
	}
}

func (q *Queue) pauseBetweenLooks(ctx context.Context) {
	wait := q.cfg.PingEvery/2 +
		rand.N(q.cfg.PingEvery) //nolint:gosec,forbidigo // many workers lose it at once: they should not knock together
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pingMain asks for a sign of life and remembers what came.
func (q *Queue) pingMain(ctx context.Context) error {
	try, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	err := q.main.Ping(try)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		q.markLost(ctx, err, false)
	case q.isForgiving():
		q.markFound(ctx)
	}
	return err
}

// worthTrying reports whether the main queue should be given a message.
func (q *Queue) worthTrying() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	worth := q.since.IsZero() || q.trial
	q.trial = false
	return worth
}

// isForgiving reports whether a sign of life is enough to be there again.
func (q *Queue) isForgiving() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trial = q.refuses
	return !q.refuses
}

// markLost notes that the main queue is away, or refuses messages.
func (q *Queue) markLost(ctx context.Context, err error, refuses bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.cfg.Clock.Now()
	if q.since.IsZero() {
		q.since, q.said = now, time.Time{}
		q.cfg.Metrics.Queue(false)
	}
	q.refuses = refuses
	if !q.said.IsZero() && now.Sub(q.said) < q.cfg.LogEvery {
		return
	}
	q.said = now
	q.cfg.Logger.WarnContext(ctx, q.cfg.Name+" does not answer: due work is done straight from the database",
		"since", now.Sub(q.since).Round(time.Second), "error", err)
}

// markFound notes that the main queue is there.
func (q *Queue) markFound(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() {
		return
	}
	away := q.cfg.Clock.Now().Sub(q.since)
	q.since, q.refuses, q.trial = time.Time{}, false, false
	q.cfg.Metrics.Queue(true)
	q.cfg.Logger.InfoContext(ctx, q.cfg.Name+" answers again", "away", away.Round(time.Millisecond))
}

// OutageText says in one line, for a person, that the main queue is away; empty: it
// is there.
func (q *Queue) OutageText() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() {
		return ""
	}
	away := q.cfg.Clock.Now().Sub(q.since).Round(time.Second)
	return fmt.Sprintf("%s has not answered for %v: due work is done straight from the database", q.cfg.Name, away)
}

// Close implements queue.Queue.
func (q *Queue) Close() error { return errors.Join(q.spare.Close(), q.main.Close()) }
