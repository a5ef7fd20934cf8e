package standby_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
	"github.com/forewarm/forewarm/worker/queue/queuetest"
	"github.com/forewarm/forewarm/worker/queue/standby"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

var errAway = errors.New("connection refused")

// service is a queue that can be away, hang, or live and take nothing.
type service struct {
	*memqueue.Queue
	away, hangs, full atomic.Bool
	asked             atomic.Int64 // messages that it was given
}

func newService() *service { return &service{Queue: memqueue.New(slog.New(slog.DiscardHandler))} }

func (s *service) currentTrouble(ctx context.Context) error {
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.away.Load() {
		return errAway
	}
	return nil
}

func (s *service) Ping(ctx context.Context) error { return s.currentTrouble(ctx) }

func (s *service) Enqueue(ctx context.Context, m queue.Message) error {
	s.asked.Add(1)
	if err := s.currentTrouble(ctx); err != nil {
		return err
	}
	if s.full.Load() {
		return errors.New("OOM command not allowed")
	}
	return s.Queue.Enqueue(ctx, m)
}

func (s *service) Run(ctx context.Context, n int, h queue.Handler) error {
	if err := s.currentTrouble(ctx); err != nil {
		return err
	}
	return s.Queue.Run(ctx, n, h)
}

func silentLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"there": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, queuetest.Harness{New: func(*testing.T) queue.Queue {
				s := newService()
				s.away.Store(away)
				return standby.New(s, standby.Config{Logger: silentLogger()})
			}})
		})
	}
}

// rig runs a Queue in a bubble and counts what is delivered.
type rig struct {
	*testing.T
	service   *service
	q         *standby.Queue
	registry  *prometheus.Registry
	log       bytes.Buffer
	delivered atomic.Int64
}

func (r *rig) enqueueTask(id string) {
	r.Helper()
	require.NoError(r, r.q.Enqueue(r.Context(), queue.Message{TaskID: id}))
	synctest.Wait()
}

// requireUp is what the metric shows.
func (r *rig) requireUp(want float64) {
	r.Helper()
	families, err := r.registry.Gather()
	require.NoError(r, err)
	for _, f := range families {
		if f.GetName() == "forewarm_queue_up" {
			require.InDelta(r, want, f.GetMetric()[0].GetGauge().GetValue(), 0)
			return
		}
	}
	r.Fatal("there is no forewarm_queue_up")
}

func runInBubble(t *testing.T, prepare func(*service), story func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, service: newService(), registry: prometheus.NewRegistry()}
		prepare(r.service)
		metrics, err := obs.NewMetrics(r.registry)
		require.NoError(t, err)
		r.q = standby.New(r.service, standby.Config{Name: "Redis", Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
			Metrics: metrics})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.q.Run(ctx, 2, func(context.Context, queue.Message) { r.delivered.Add(1) }) }()
		synctest.Wait()
		story(r)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, r.q.Close())
	})
}

func TestWorkGoesOnWhileTheQueueIsAway(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(*service) {}, func(r *rig) {
		r.enqueueTask("a")
		r.requireUp(1)
		require.Empty(r, r.q.OutageText())
		r.service.away.Store(true)
		r.enqueueTask("b")
		r.enqueueTask("c")
		require.EqualValues(r, 3, r.delivered.Load())
		require.EqualValues(r, 2, r.service.asked.Load(),
			"a queue that is known to be away was asked again for each message")
		r.requireUp(0)
		time.Sleep(77 * time.Second)
		require.Contains(r, r.q.OutageText(), "Redis has not answered for 1m17s")
		require.Equal(r, 2, strings.Count(r.log.String(), "Redis does not answer"), "once, and once a minute")

		r.service.away.Store(false)
		time.Sleep(4 * time.Second)
		r.enqueueTask("d")
		r.requireUp(1)
		require.EqualValues(r, 4, r.delivered.Load())
		require.EqualValues(r, 3, r.service.asked.Load(), "the queue is used again")
		require.Contains(r, r.log.String(), "Redis answers again")
	})
}

func TestAnAbsenceIsNoticedThoughNothingIsSent(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(*service) {}, func(r *rig) {
		r.service.away.Store(true)
		time.Sleep(2 * time.Second)
		r.requireUp(0)
	})
}

// A queue that swallows what it is sent costs one patience, not one a message.
func TestAQueueThatHangsCostsItsPatienceOnce(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(*service) {}, func(r *rig) {
		r.service.hangs.Store(true)
		began := time.Now()
		for range 50 {
			r.enqueueTask("a")
		}
		require.LessOrEqual(r, time.Since(began), time.Second)
		require.Positive(r, r.delivered.Load())
	})
}

func TestAWorkerStartsWithoutTheQueue(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(s *service) { s.away.Store(true) }, func(r *rig) {
		r.enqueueTask("a")
		require.EqualValues(r, 1, r.delivered.Load())
		r.service.away.Store(false)
		time.Sleep(4 * time.Second)
		require.NoError(r, r.service.Queue.Enqueue(r.Context(), queue.Message{TaskID: "elsewhere"}))
		synctest.Wait()
		require.EqualValues(r, 2, r.delivered.Load(), "the queue proper is not served although it came")
	})
}

// One that lives and has no room is asked once a look, and told of once a minute.
func TestAQueueThatTakesNothingIsNotThere(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(s *service) { s.full.Store(true) }, func(r *rig) {
		for range 100 {
			r.enqueueTask("a")
			time.Sleep(100 * time.Millisecond)
		}
		require.EqualValues(r, 100, r.delivered.Load())
		require.Less(r, r.service.asked.Load(), int64(40))
		require.Equal(r, 1, strings.Count(r.log.String(), "\n"), r.log.String())
		r.requireUp(0)
		r.service.full.Store(false)
		time.Sleep(2 * time.Second)
		r.enqueueTask("a")
		r.requireUp(1)
	})
}
