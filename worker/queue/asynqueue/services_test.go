//go:build services

package asynqueue

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/queuetest"
)

// patience is how long these tests wait for Redis and asynq.
const patience = 2 * time.Minute

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		New:  func(t *testing.T) queue.Queue { return newQueue(t, Config{}) },
		Wipe: func(t *testing.T, q queue.Queue) { wipeQueue(t, q.(*Queue)) },
	})
}

// asynq gives up a handler whose time is up and keeps the message in its
// archive: the same epoch is then refused for 90 days, the next one is not.
func TestAnEpochLeavesAnArchivedMessageBehind(t *testing.T) {
	t.Parallel()
	q := closeAtEnd(t, newQueue(t, Config{Timeout: time.Second}))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	m := queue.Message{TaskID: "tsk_stuck", Kind: "node.create"}
	got, ended := make(chan queue.Message, 2), make(chan error, 1)
	go func() {
		ended <- q.Run(ctx, 1, func(ctx context.Context, m queue.Message) {
			got <- m
			<-ctx.Done()
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })

	require.NoError(t, q.Enqueue(ctx, m))
	require.Equal(t, m, <-got)
	inspector := asynq.NewInspectorFromRedisClient(q.redis)
	require.Eventually(t, func() bool {
		archived, err := inspector.ListArchivedTasks(q.cfg.Namespace)
		return err == nil && len(archived) == 1
	}, patience, 20*time.Millisecond)
	require.NoError(t, q.Enqueue(ctx, m), "a held message is success")

	m.Epoch++
	require.NoError(t, q.Enqueue(ctx, m))
	select {
	case next := <-got:
		require.Equal(t, m, next)
	case <-ctx.Done():
		t.Fatal("the next epoch was not delivered")
	}
}

func TestForeignTasksDoNotStopTheQueue(t *testing.T) {
	t.Parallel()
	q := closeAtEnd(t, newQueue(t, Config{}))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	foreign := asynq.NewTask("other", []byte("garbage"))
	_, err := q.client.EnqueueContext(ctx, foreign, asynq.Queue(q.cfg.Namespace), asynq.MaxRetry(0))
	require.NoError(t, err)
	m := queue.Message{TaskID: "tsk_1", Kind: "node.create"}
	require.NoError(t, q.Enqueue(ctx, m))

	got, ended := make(chan queue.Message, 1), make(chan error, 1)
	go func() { ended <- q.Run(ctx, 1, func(_ context.Context, m queue.Message) { got <- m }) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	select {
	case next := <-got:
		require.Equal(t, m, next)
	case <-ctx.Done():
		t.Fatal("the message after the foreign one was not delivered")
	}
}

func TestNamespacesShareARedisApart(t *testing.T) {
	t.Parallel()
	a, b := closeAtEnd(t, newQueue(t, Config{})), closeAtEnd(t, newQueue(t, Config{}))
	require.NoError(t, a.Enqueue(t.Context(), queue.Message{TaskID: "tsk_1"}))
	require.NotEmpty(t, queueKeys(t, a))
	require.Empty(t, queueKeys(t, b))
}

// newQueue returns a queue in a namespace of its own, which is removed at the
// end of the test. The caller closes it.
func newQueue(t *testing.T, cfg Config) *Queue {
	t.Helper()
	url := os.Getenv("FOREWARM_TEST_REDIS")
	require.NotEmpty(t, url, "FOREWARM_TEST_REDIS must name a Redis, for example redis://127.0.0.1:6379/9")
	cfg.URL = obs.NewSecret(url)
	cfg.Namespace = "test-" + strings.ToLower(rand.Text())
	cfg.PollInterval = 10 * time.Millisecond
	cfg.Logger = slog.New(slog.DiscardHandler)
	q, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { cleanUp(t, url, cfg.Namespace) })
	return q
}

// closeAtEnd closes q at the end of the test.
func closeAtEnd(t *testing.T, q *Queue) *Queue {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// wipeQueue removes all that Redis holds of q. FLUSHDB would do the same to this
// queue, and to every test that runs beside it.
func wipeQueue(t *testing.T, q *Queue) {
	t.Helper()
	if held := queueKeys(t, q); len(held) > 0 {
		require.NoError(t, q.redis.Del(context.Background(), held...).Err())
	}
}

func queueKeys(t *testing.T, q *Queue) []string {
	t.Helper()
	return namespaceKeys(t, q.redis, q.cfg.Namespace)
}

func namespaceKeys(t *testing.T, rdb *redis.Client, namespace string) []string {
	t.Helper()
	var all []string
	scan := rdb.Scan(context.Background(), 0, "asynq:{"+namespace+"}*", 1000).Iterator()
	for scan.Next(context.Background()) {
		all = append(all, scan.Val())
	}
	require.NoError(t, scan.Err())
	return all
}

// cleanUp uses its own connection, since the queue's is closed by then.
func cleanUp(t *testing.T, url, namespace string) {
	t.Helper()
	opt, err := redis.ParseURL(url)
	require.NoError(t, err)
	rdb := redis.NewClient(opt)
	defer func() { require.NoError(t, rdb.Close()) }()
	if held := namespaceKeys(t, rdb, namespace); len(held) > 0 {
		require.NoError(t, rdb.Del(context.Background(), held...).Err())
	}
	require.NoError(t, rdb.SRem(context.Background(), "asynq:queues", namespace).Err())
}

// TestInspect asks a real server.
func TestInspect(t *testing.T) {
	t.Parallel()
	q := closeAtEnd(t, newQueue(t, Config{}))
	version, _, err := q.Inspect(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+`, version)
}
