package worker_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// newExclusiveWorker is another worker of the world that is held to be the only one.
func (w *world) newExclusiveWorker(holder string) {
	w.t.Helper()
	var err error
	w.worker, err = worker.New(w.ledger, memqueue.New(silentLogger()), []provisioners.Provisioner{w.cloud},
		worker.Config{
			Deployment: deployment, Concurrency: 4, Logger: silentLogger(), Rand: rand.New(rand.NewPCG(1, 1)),
			DispatchEvery: time.Second,
			Holder:        holder, Host: "host of " + holder,
		})
	require.NoError(w.t, err)
}

// A second worker of a provisioner that serves one at a time waits: until the first
// has ended, or until the hold of one that died is over.
func TestOneWorkerHasAnExclusiveProvisioner(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := newRunningWorld(t, sameProvisioner)
		w.newExclusiveWorker("first")
		first := w.runWorker()
		time.Sleep(time.Second)
		w.newExclusiveWorker("second")
		second := w.runWorker()
		time.Sleep(time.Minute) // the first renews its hold
		var held *ledger.ProvisionerHeldError
		err := w.ledger.HoldProvisioner(t.Context(), ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "third"},
			time.Minute)
		require.ErrorAs(t, err, &held)
		require.Equal(t, "first", held.Holder)
		require.ErrorContains(t, err, "host of first")
		require.NoError(t, first())
		time.Sleep(3 * time.Second)
		err = w.ledger.HoldProvisioner(t.Context(), ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "third"},
			time.Minute)
		require.ErrorAs(t, err, &held)
		require.Equal(t, "second", held.Holder, "at once")
		require.NoError(t, second())

		require.NoError(t, w.ledger.HoldProvisioner(t.Context(),
			ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "dead"}, 30*time.Second))
		w.newExclusiveWorker("heir")
		heir := w.runWorker()
		time.Sleep(29 * time.Second)
		require.ErrorAs(t, w.ledger.HoldProvisioner(t.Context(),
			ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "third"}, time.Minute), &held)
		require.Equal(t, "dead", held.Holder)
		time.Sleep(4 * time.Second)
		require.ErrorAs(t, w.ledger.HoldProvisioner(t.Context(),
			ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "third"}, time.Minute), &held)
		require.Equal(t, "heir", held.Holder)
		require.NoError(t, heir())
	})
}

// A worker that another has taken over from, as after a long pause of its process,
// ends and says so.
func TestAWorkerThatWasTakenOverFromEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := newRunningWorld(t, sameProvisioner)
		w.newExclusiveWorker("paused")
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- w.worker.Run(ctx) }()
		time.Sleep(time.Second)
		hold := ledger.ProvisionerHold{Name: w.cloud.Name(), Holder: "paused"}
		require.NoError(t, w.ledger.HoldProvisioner(t.Context(), hold, 0)) // its hold is over
		hold.Holder, hold.Host = "new", "elsewhere"
		require.NoError(t, w.ledger.HoldProvisioner(t.Context(), hold, time.Hour))
		time.Sleep(11 * time.Second)
		var held *ledger.ProvisionerHeldError
		require.ErrorAs(t, <-ended, &held)
		require.Equal(t, "elsewhere", held.Host)
	})
}
