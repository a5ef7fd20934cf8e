package worker_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// A worker that takes a simulated cloud over with an empty state file says that the machines of the other host are not
// there, and whose they are. One that knows them says nothing.
func TestAStandbyWithoutTheMachinesSaysSo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := newRunningWorld(t, sameProvisioner)
		w.newExclusiveWorker("first")
		first := w.runWorker()
		w.allocateNode()
		time.Sleep(3 * time.Minute)
		empty, err := sim.New(cloudConfig(), w.wall)
		require.NoError(t, err)
		takeOver := func(cloud provisioners.Provisioner) string {
			var said bytes.Buffer
			w.worker, err = worker.New(w.ledger, memqueue.New(silentLogger()), []provisioners.Provisioner{cloud},
				worker.Config{Deployment: deployment, Concurrency: 4, Logger: slog.New(slog.NewTextHandler(&said, nil)),
					Rand: rand.New(rand.NewPCG(1, 1)), DispatchEvery: time.Second, Holder: "standby", Host: "another"})
			require.NoError(t, err)
			standby := w.runWorker()
			time.Sleep(5 * time.Second)
			require.NoError(t, first())
			time.Sleep(5 * time.Second)
			require.NoError(t, standby())
			return said.String()
		}
		require.NotContains(t, takeOver(w.cloud), "this worker knows none")

		w.newExclusiveWorker("first")
		first = w.runWorker()
		time.Sleep(5 * time.Second)
		said := takeOver(empty)
		require.Contains(t, said, "this worker knows none of a provisioner's machines")
		require.Contains(t, said, `provisioner=sim machines=1 before="host of first"`)
	})
}
