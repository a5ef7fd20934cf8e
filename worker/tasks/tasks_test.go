package tasks_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/tasks"
)

const kind = "test.kind"

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// bench is a ledger with one task row of a kind of the test's own.
type bench struct {
	t      *testing.T
	store  ledger.Store
	ledger *verbs.Ledger
	id     string
}

func newBench(t *testing.T, c clock.Clock) *bench {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: c, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	b := &bench{t: t, store: store, ledger: verbs.New(store, ids.UUID{}, ledger.Config{}),
		id: ids.UUID{}.New(ids.Task)}
	require.NoError(t, store.InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Tasks: []ledger.Task{{
			ID: b.id, Kind: kind, Subject: "x", State: ledger.TaskReady, RunAt: tx.Now(), CreatedAt: tx.Now(),
		}}})
	}))
	return b
}

func (b *bench) readTask() ledger.Task {
	b.t.Helper()
	var row ledger.Task
	require.NoError(b.t, b.store.Read(context.WithoutCancel(b.t.Context()), func(r ledger.Reader) (err error) {
		row, err = r.Task(b.id)
		return err
	}))
	return row
}

func (b *bench) newRunner(h tasks.Handler, change ...func(*tasks.Config)) *tasks.Runner {
	cfg := tasks.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(&cfg)
	}
	return tasks.New(b.ledger, map[string]tasks.Handler{kind: h}, cfg)
}

func (b *bench) newMessage() queue.Message {
	return queue.Message{TaskID: b.id, Kind: kind, Attempt: b.readTask().Attempt}
}

// finishTask ends the task well.
func (b *bench) finishTask(ctx context.Context, c tasks.Claim) error {
	return b.ledger.FinishTask(ctx, c.Guard)
}

func TestAHandlerGetsItsClaim(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	b := newBench(t, c)
	calls := 0
	runner := b.newRunner(func(ctx context.Context, claim tasks.Claim) error {
		calls++
		require.Equal(t, start, claim.Now)
		require.Equal(t, b.id, claim.Task.ID)
		require.Equal(t, ledger.TaskRunning, b.readTask().State)
		require.Equal(t, start.Add(10*time.Second), b.readTask().LeaseUntil)
		return b.finishTask(ctx, claim)
	})
	m := b.newMessage()
	runner.Handle(t.Context(), m)
	require.Equal(t, ledger.TaskDone, b.readTask().State)
	runner.Handle(t.Context(), m)
	require.Equal(t, 1, calls, "a duplicate was handled")
}

func TestWhatWentWrongIsTriedAgain(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, tasks.Claim) error { panic("oh") }
	fails := func(context.Context, tasks.Claim) error {
		return errors.New("broken\x00 \xff" + strings.Repeat("é", 400))
	}
	throttled := func(context.Context, tasks.Claim) error {
		return &provisioners.Error{Kind: provisioners.KindThrottled, RetryAfter: time.Minute}
	}
	for name, tc := range map[string]struct {
		handler tasks.Handler
		wait    time.Duration
		failure string
	}{
		"panic":     {panics, time.Second, "panic: oh"},
		"error":     {fails, time.Second, "broken "},
		"throttled": {throttled, time.Minute + time.Second, "throttled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, clock.NewManual(start))
			b.newRunner(tc.handler).Handle(t.Context(), b.newMessage())
			row := b.readTask()
			require.Equal(t, ledger.TaskReady, row.State)
			require.Equal(t, 1, row.Attempt)
			require.Equal(t, start.Add(tc.wait), row.RunAt)
			require.Contains(t, row.LastError, tc.failure)
			require.Less(t, len(row.LastError), 501)
		})
	}
}

// The wait doubles with each failure in a row, up to two minutes, and starts
// again after a success: not with the number of runs, of which a node has many.
func TestBackOffGrowsWithFailuresInARow(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	b := newBench(t, c)
	fail := true
	runner := b.newRunner(func(ctx context.Context, claim tasks.Claim) error {
		if fail {
			return errors.New("no")
		}
		return b.ledger.RetryTask(ctx, claim.Guard, time.Second, "")
	})
	wait := func() time.Duration {
		runner.Handle(t.Context(), b.newMessage())
		d := b.readTask().RunAt.Sub(c.Now())
		c.Advance(d)
		return d
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 120, 120} {
		require.Equal(t, want*time.Second, wait())
	}
	fail = false
	wait()
	fail = true
	require.Equal(t, time.Second, wait())
}

func TestBackOffIsSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Time]bool{}
	chance := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		b := newBench(t, clock.NewManual(start))
		b.newRunner(func(context.Context, tasks.Claim) error { return errors.New("no") },
			func(c *tasks.Config) { c.Rand = chance }).Handle(t.Context(), b.newMessage())
		at := b.readTask().RunAt
		require.False(t, at.After(start.Add(time.Second)))
		seen[at] = true
	}
	require.Greater(t, len(seen), 4)
}

// A task of a newer version's kind is left to a worker that knows it.
func TestAnUnknownKindIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, clock.NewManual(start))
	before := b.readTask()
	tasks.New(b.ledger, nil, tasks.Config{Logger: slog.New(slog.DiscardHandler)}).Handle(t.Context(), b.newMessage())
	require.Equal(t, before, b.readTask())
}

// A worker that is told to end hands its task back for another one at once.
func TestAWorkerThatEndsHandsItsTaskBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, clock.NewManual(start))
	ctx, cancel := context.WithCancel(t.Context())
	b.newRunner(func(ctx context.Context, _ tasks.Claim) error {
		cancel()
		return ctx.Err()
	}).Handle(ctx, b.newMessage())
	row := b.readTask()
	require.Equal(t, ledger.TaskReady, row.State)
	require.Equal(t, start, row.RunAt)
}

func withHeartbeat(c *tasks.Config) { c.Heartbeat = 3 * time.Second }

// Under synctest the machine's clock is the bubble's, so that an hour of work
// takes no time.
func TestTheHeartbeatKeepsALongTaskClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, clock.System{})
		runner := b.newRunner(func(ctx context.Context, claim tasks.Claim) error {
			for range 60 {
				time.Sleep(time.Minute)
				freed, err := b.ledger.Reap(ctx)
				require.NoError(t, err)
				require.Zero(t, freed, "the claim ran out")
			}
			return b.finishTask(ctx, claim)
		}, withHeartbeat)
		runner.Handle(t.Context(), b.newMessage())
		require.Equal(t, ledger.TaskDone, b.readTask().State)
	})
}

// When another worker has the task, the handler's context ends and nothing it
// says is written down.
func TestALostClaimEndsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, clock.System{})
		var stolen ledger.Task
		runner := b.newRunner(func(ctx context.Context, claim tasks.Claim) error {
			var err error
			require.NoError(t, b.ledger.RetryTask(ctx, claim.Guard, 0, ""))
			stolen, err = b.ledger.ClaimTask(ctx, b.id, b.readTask().Attempt, time.Hour)
			require.NoError(t, err)
			<-ctx.Done()
			return ctx.Err()
		}, withHeartbeat)
		runner.Handle(t.Context(), b.newMessage())
		require.Equal(t, stolen, b.readTask())
	})
}

// A worker that cannot reach the database for as long as its lease stops before
// it ends.
func TestAnUnreachableDatabaseEndsTheHandlerInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, clock.System{})
		cut := &cutOff{Store: b.store}
		b.ledger = verbs.New(cut, ids.UUID{}, ledger.Config{})
		began := time.Now()
		runner := b.newRunner(func(ctx context.Context, _ tasks.Claim) error {
			cut.off.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}, withHeartbeat)
		runner.Handle(t.Context(), b.newMessage())
		require.Less(t, time.Since(began), 10*time.Second)
		require.Equal(t, ledger.TaskRunning, b.readTask().State, "its lease runs out")
	})
}

// cutOff is a store that can be made unreachable.
type cutOff struct {
	ledger.Store
	off atomic.Bool
}

func (c *cutOff) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	if c.off.Load() {
		return errors.New("no route to host")
	}
	return c.Store.InTx(ctx, fn)
}
