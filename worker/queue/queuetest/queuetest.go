// Package queuetest is the conformance suite of the queue port. Every adapter
// runs it in its own tests; what it checks is what the dispatcher and the
// worker rely on, and nothing more.
package queuetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/worker/queue"
)

// patience is how long a subtest waits for something that must happen.
const patience = 2 * time.Minute

// moment is how long a subtest gives something that must not happen.
const moment = 150 * time.Millisecond

// Harness makes the queues under test.
type Harness struct {
	// New returns an empty queue that shares no message with any other. The
	// suite closes it.
	New func(t *testing.T) queue.Queue
	// Wipe makes the queue forget everything it holds, as its server would after
	// a restart without persistence. Nil leaves out the subtests that need it.
	Wipe func(t *testing.T, q queue.Queue)
}

// Run checks every promise of the port, each on a fresh queue.
func Run(t *testing.T, h Harness) {
	t.Helper()
	checks := map[string]func(*fixture){
		"delivers every message unchanged":          deliversUnchanged,
		"a repeat is delivered once or twice":       repeatIsHarmless,
		"another epoch is new after a lost one":     anotherEpochIsNew,
		"concurrency is used and limited":           concurrencyIsLimited,
		"a panic does not stop the queue":           panicIsContained,
		"the end of the context ends the handlers":  endReachesHandlers,
		"Run waits for its handlers":                runWaits,
		"a thousand messages all arrive":            thousandArrive,
		"messages enqueued while nobody runs wait":  waitsForARunner,
		"several enqueuers at once lose nothing":    concurrentEnqueue,
		"Enqueue after the context ended is honest": enqueueHonoursContext,
	}
	if h.Wipe != nil {
		checks["a wiped queue takes the same message again"] = wipedQueueStartsOver
		checks["a wipe under a running handler is survived"] = wipeUnderHandler
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newFixture(t, h))
		})
	}
}

// fixture is one queue under test with a deadline.
type fixture struct {
	*testing.T
	ctx  context.Context
	q    queue.Queue
	wipe func()
}

func newFixture(t *testing.T, h Harness) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	q := h.New(t)
	t.Cleanup(func() {
		cancel()
		require.NoError(t, q.Close())
	})
	return &fixture{T: t, ctx: ctx, q: q, wipe: func() { h.Wipe(t, q) }}
}

func (f *fixture) enqueueAll(ms ...queue.Message) {
	f.Helper()
	for _, m := range ms {
		require.NoError(f, f.q.Enqueue(f.ctx, m))
	}
}

// run is one call of Queue.Run in the background.
type run struct {
	f      *fixture
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// startRun runs the queue until stop or the end of the test.
func (f *fixture) startRun(concurrency int, h queue.Handler) *run {
	ctx, cancel := context.WithCancel(f.ctx)
	r := &run{f: f, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = f.q.Run(ctx, concurrency, h)
	}()
	f.Cleanup(r.stopRun)
	return r
}

// stopRun ends the run and waits for it. It may be called again.
func (r *run) stopRun() {
	r.f.Helper()
	r.cancel()
	receiveValue(r.f, r.done, "Run to return")
	require.NoError(r.f, r.err)
}

// receiveValue returns the next value of c, which must come before the deadline.
func receiveValue[T any](f *fixture, c <-chan T, what string) T {
	f.Helper()
	select {
	case v := <-c:
		return v
	case <-f.ctx.Done():
		f.Fatalf("waited %v in vain for %s", patience, what)
		panic("unreachable")
	}
}

// requireSilence checks that c stays silent for a moment.
func requireSilence[T any](f *fixture, c <-chan T, what string) {
	f.Helper()
	select {
	case <-c:
		f.Fatal(what)
	case <-time.After(moment):
	}
}

// sendTo returns a handler that sends every message to c.
func sendTo(c chan<- queue.Message) queue.Handler {
	return func(ctx context.Context, m queue.Message) {
		select {
		case c <- m:
		case <-ctx.Done():
		}
	}
}
