package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
	"github.com/forewarm/forewarm/worker/relay"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

type taskFixture struct {
	t      *testing.T
	store  ledger.Store
	ledger *verbs.Ledger
	ids    ids.Source
}

func newTaskFixture(t *testing.T, c clock.Clock) *taskFixture {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: c, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	d := &taskFixture{t: t, store: store, ids: &ids.Sequence{}}
	d.ledger = verbs.New(store, d.ids, ledger.Config{})
	return d
}

// addTasks writes n task rows that are due after a while, and returns their ids.
func (d *taskFixture) addTasks(n int, after time.Duration) []string {
	d.t.Helper()
	var all []string
	require.NoError(d.t, d.store.InTx(d.t.Context(), func(tx ledger.Tx) error {
		var c ledger.Change
		for range n {
			id := d.ids.New(ids.Task)
			all = append(all, id)
			c.Tasks = append(c.Tasks, ledger.Task{ID: id, Kind: "test", Subject: "x", RunAt: tx.Now().Add(after),
				CreatedAt: tx.Now()})
		}
		return tx.Save(c)
	}))
	return all
}

func (d *taskFixture) newRelay(q queue.Queue, cfg relay.Config) *relay.Relay {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return relay.New(d.ledger, q, cfg)
}

func stepRelay(t *testing.T, r *relay.Relay) int {
	t.Helper()
	sent, err := r.Step(t.Context())
	require.NoError(t, err)
	return sent
}

func drainQueue(t *testing.T, q *memqueue.Queue) (all []queue.Message) {
	t.Helper()
	for q.Step(t.Context(), func(_ context.Context, m queue.Message) { all = append(all, m) }) {
	}
	return all
}

func TestDueRowsAreSentOnceAWindow(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	d, q := newTaskFixture(t, c), memqueue.New(nil)
	r := d.newRelay(q, relay.Config{Limit: 2, Window: 5 * time.Second})
	due := d.addTasks(3, 0)
	d.addTasks(1, time.Hour)
	require.Equal(t, 2, stepRelay(t, r))
	require.Equal(t, 1, stepRelay(t, r))
	require.Zero(t, stepRelay(t, r), "a row was sent again within its window")
	var got []string
	for _, m := range drainQueue(t, q) {
		require.Equal(t, queue.Message{TaskID: m.TaskID, Kind: "test"}, m)
		got = append(got, m.TaskID)
	}
	require.Equal(t, due, got)
	c.Advance(5 * time.Second)
	require.Equal(t, 2, stepRelay(t, r), "a row that nobody claimed was not sent again")
}

// A worker that died between taking a message and claiming its row leaves a
// message that some queues refuse for months; every third dispatch has a new name.
func TestEveryThirdDispatchHasANewEpoch(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	d, q := newTaskFixture(t, c), memqueue.New(nil)
	r := d.newRelay(q, relay.Config{Window: time.Second})
	d.addTasks(1, 0)
	var epochs []int
	for range 7 {
		require.Equal(t, 1, stepRelay(t, r))
		epochs = append(epochs, drainQueue(t, q)[0].Epoch)
		c.Advance(time.Second)
	}
	require.Equal(t, []int{0, 0, 1, 1, 1, 2, 2}, epochs)
}

// down is a queue that takes nothing.
type down struct{ *memqueue.Queue }

func (down) Enqueue(context.Context, queue.Message) error { return errors.New("connection refused") }

func TestAQueueThatIsDownIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	d, q := newTaskFixture(t, c), memqueue.New(nil)
	d.addTasks(2, 0)
	require.Zero(t, stepRelay(t, d.newRelay(down{q}, relay.Config{})))
	c.Advance(5 * time.Second)
	require.Equal(t, 2, stepRelay(t, d.newRelay(q, relay.Config{})))
}

func TestTwoRelaysShareTheRows(t *testing.T) {
	t.Parallel()
	d, q := newTaskFixture(t, clock.NewManual(start)), memqueue.New(nil)
	d.addTasks(50, 0)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			r := d.newRelay(q, relay.Config{Limit: 5})
			for {
				if sent, err := r.Step(t.Context()); err != nil || sent == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, m := range drainQueue(t, q) {
		seen[m.TaskID]++
	}
	require.Len(t, seen, 50)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

func TestRunSendsWhatIsDueAndAnswersTheBell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, q := newTaskFixture(t, clock.System{}), memqueue.New(nil)
		r := d.newRelay(q, relay.Config{Limit: 2, Every: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		synctest.Wait()

		d.addTasks(5, 0)
		r.Ring()
		synctest.Wait()
		require.Equal(t, 5, q.Len(), "the bell did not send everything at once")
		d.addTasks(1, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 6, q.Len(), "the ticker sent nothing")
		cancel()
		<-ended
	})
}
