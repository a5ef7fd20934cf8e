package memqueue_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
	"github.com/forewarm/forewarm/worker/queue/queuetest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func newQueue() *memqueue.Queue { return memqueue.New(slog.New(slog.DiscardHandler)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		New:  func(*testing.T) queue.Queue { return newQueue() },
		Wipe: func(_ *testing.T, q queue.Queue) { q.(*memqueue.Queue).Forget() },
	})
}

func TestStepTakesOneMessageInOrder(t *testing.T) {
	t.Parallel()
	q, ctx := newQueue(), t.Context()
	var got []string
	record := func(_ context.Context, m queue.Message) { got = append(got, m.TaskID) }

	require.False(t, q.Step(ctx, record), "an empty queue has nothing to step")
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, q.Enqueue(ctx, queue.Message{TaskID: id}))
	}
	require.True(t, q.Step(ctx, record))
	require.Equal(t, []string{"a"}, got)
	require.Equal(t, 2, q.Len())
	for q.Step(ctx, record) {
	}
	require.Equal(t, []string{"a", "b", "c"}, got)
}

func TestAHandlerMayEnqueueItsOwnMessageAgain(t *testing.T) {
	t.Parallel()
	q, ctx, runs := newQueue(), t.Context(), 0
	again := func(ctx context.Context, m queue.Message) {
		if runs++; runs < 3 {
			require.NoError(t, q.Enqueue(ctx, m))
		}
	}
	require.NoError(t, q.Enqueue(ctx, queue.Message{TaskID: "a"}))
	for q.Step(ctx, again) {
	}
	require.Equal(t, 3, runs, "a message that was taken is no longer held")
}

func TestEnqueueAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := newQueue()
	require.ErrorIs(t, q.Enqueue(ctx, queue.Message{TaskID: "a"}), context.Canceled)
	require.Zero(t, q.Len())
}

func TestRunRefusesNoConcurrency(t *testing.T) {
	t.Parallel()
	require.Error(t, newQueue().Run(t.Context(), 0, func(context.Context, queue.Message) {}))
}

func TestRunKeepsWaitingForAHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		ctx, cancel := context.WithCancel(t.Context())
		release, returned := make(chan struct{}), false
		require.NoError(t, q.Enqueue(ctx, queue.Message{TaskID: "a"}))
		go func() {
			_ = q.Run(ctx, 2, func(context.Context, queue.Message) { <-release })
			returned = true
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.False(t, returned, "Run must wait for its handler")
		close(release)
		synctest.Wait()
		require.True(t, returned)
	})
}

// What waits is always what was enqueued and neither taken nor forgotten, each
// message once, oldest first.
func TestQueueFollowsItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q, ctx := newQueue(), context.Background()
		var model []queue.Message
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": func(t *rapid.T) {
				m := queue.Message{
					TaskID: strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "id")), Kind: "k",
					Attempt: rapid.IntRange(0, 1).Draw(t, "attempt"), Epoch: rapid.IntRange(0, 1).Draw(t, "epoch"),
				}
				require.NoError(t, q.Enqueue(ctx, m))
				for _, waiting := range model {
					if waiting == m {
						return
					}
				}
				model = append(model, m)
			},
			"step": func(t *rapid.T) {
				var got []queue.Message
				took := q.Step(ctx, func(_ context.Context, m queue.Message) { got = append(got, m) })
				require.Equal(t, len(model) > 0, took)
				if took {
					require.Equal(t, model[:1], got)
					model = model[1:]
				}
			},
			"forget": func(*rapid.T) { q.Forget(); model = nil },
			"":       func(t *rapid.T) { require.Equal(t, len(model), q.Len()) },
		})
	})
}
