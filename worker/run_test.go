package worker_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// newRunningWorld makes a world whose time is the bubble's, with a worker to run.
func newRunningWorld(t *testing.T, cloud func(provisioners.Provisioner) provisioners.Provisioner) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(start), ids: &ids.Sequence{}, wall: clock.System{}}
	w.openStore("sqlite://:memory:")
	var err error
	w.cloud, err = sim.New(cloudConfig(), w.wall)
	require.NoError(t, err)
	w.bootstrapTenant()
	w.worker, err = worker.New(w.ledger, memqueue.New(silentLogger()), []provisioners.Provisioner{cloud(w.cloud)},
		worker.Config{
			Deployment: deployment, Concurrency: 4, Heartbeat: 3 * time.Second, Logger: silentLogger(),
			Rand: rand.New(rand.NewPCG(1, 1)), DispatchEvery: time.Second,
		})
	require.NoError(t, err)
	return w
}

// warm makes the store learn its row types outside of any bubble: gorm keeps what
// it learned for the whole process, with channels that a second bubble must not
// touch.
var warm sync.Once

func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	warm.Do(func() {
		w := newWorld(t)
		w.startWorker(parts{})
		w.livePromise()
	})
	synctest.Test(t, test)
}

func sameProvisioner(p provisioners.Provisioner) provisioners.Provisioner { return p }

// runWorker runs the worker until the returned function is called, which reports what
// Run said.
func (w *world) runWorker() (stop func() error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.worker.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func TestRunKeepsAPromiseAndStops(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := newRunningWorld(t, sameProvisioner)
		stop := w.runWorker()
		now := time.Now()
		r, err := w.ledger.Reserve(t.Context(), w.actor, ledger.ReserveRequest{
			Pool: "a100", GPUs: 8, Window: windowFrom(now.Add(5*time.Minute), 20*time.Minute),
		})
		require.NoError(t, err)
		worker.Ring(w.worker)
		time.Sleep(5 * time.Minute)
		require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
		a, err := w.ledger.Claim(t.Context(), w.actor, r.ID, 0, "")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = w.ledger.Release(t.Context(), w.actor, a.ID)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		w.clock.Set(time.Now())
		w.requireOver(1)
		w.requireOnce()
		require.NoError(t, stop())
	})
}

// slow answers Create only after a while, or when its caller gives up.
type slow struct {
	provisioners.Provisioner
	takes time.Duration
}

func (s slow) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	select {
	case <-time.After(s.takes):
		return s.Provisioner.Create(ctx, token, spec)
	case <-ctx.Done():
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown, "gave up waiting")
	}
}

// A worker that is told to end lets what is at work finish, but not for ever.
func TestRunLetsHandlersFinishWithinItsGrace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		takes, ends time.Duration
		machines    int
	}{{5 * time.Second, 5 * time.Second, 1}, {time.Hour, 10 * time.Second, 0}} {
		inBubble(t, func(t *testing.T) {
			w := newRunningWorld(t, func(p provisioners.Provisioner) provisioners.Provisioner {
				return slow{p,
					tc.takes}
			})
			stop := w.runWorker()
			_, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 8})
			require.NoError(t, err)
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, w.readTasks()[ledger.TaskRunning])
			began := time.Now()
			require.NoError(t, stop())
			require.LessOrEqual(t, time.Since(began), tc.ends)
			require.Len(t, w.cloud.LivePerNode(), tc.machines)
			require.Zero(t, w.readTasks()[ledger.TaskRunning], "the task was not handed back")
		})
	}
}

func TestBadConfigsAreRefused(t *testing.T) {
	t.Parallel()
	cloud, err := sim.New(cloudConfig(), clock.NewManual(start))
	require.NoError(t, err)
	one, two := []provisioners.Provisioner{cloud}, []provisioners.Provisioner{cloud, cloud}
	for wrong, tc := range map[string]struct {
		cfg   worker.Config
		provs []provisioners.Provisioner
	}{
		"deployment":  {worker.Config{}, one},
		"concurrency": {worker.Config{Deployment: "x", Concurrency: -1}, one},
		"heartbeat":   {worker.Config{Deployment: "x", Heartbeat: 6 * time.Second}, one},
		"called":      {worker.Config{Deployment: "x"}, two},
	} {
		_, err := worker.New(nil, nil, tc.provs, tc.cfg)
		require.ErrorContains(t, err, wrong)
	}
}
