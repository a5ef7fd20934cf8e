package verbs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// say has the daemon of a node report a look.
func (l *lookedAt) say(look string) {
	l.w.Helper()
	_, err := l.w.ledger.RecordBeat(l.w.Context(), l.daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte(look)})
	require.NoError(l.w, err)
}

// bootOne begins a node whose machine is given a token for its daemon.
func (w *world) bootOne() node.Node {
	w.Helper()
	w.awaitDaemons = true
	w.ledger = w.restartedLedger()
	return w.bootDemanding("")
}

// bootDemanding begins a node of a pool that demands a driver, whose machine is given a token for its daemon.
func (w *world) bootDemanding(least capacity.Driver) node.Node {
	w.Helper()
	_, err := w.ledger.UpdatePool(w.Context(), operator, w.pool.ID, 1, func(p *capacity.Pool) { p.MinDriver = least })
	require.NoError(w, err)
	w.mustAllocate(w.newPerson("ann"), 1)
	w.doDueWork()
	nodes := w.readNodes(node.Booting)
	require.Len(w, nodes, 1)
	_, err = w.ledger.IssueJoinToken(w.Context(), operator, nodes[0].ID, ledger.NewSecret{ID: "first", Hash: []byte{1}},
		time.Minute)
	require.NoError(w, err)
	return nodes[0]
}

// A node whose daemon is to come is ready once that has reported.
func TestANodeAwaitsItsDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.bootOne()
	w.pass(2 * boot)
	require.Len(t, w.readNodes(node.Booting), 1, "its machine is up")
	d := w.lookAt(n.ID)
	d.say(`{"gpus":[{"uuid":"` + n.ID + `-0","health":"degraded"}]}`)
	w.pass(boot)
	require.Len(t, w.readNodes(node.Ready), 1)
}

// One whose daemon finds a GPU unhealthy is never ready, and its pool asks for another.
func TestANodeThatFailsItsBurnInIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.bootOne()
	d := w.lookAt(n.ID)
	d.say(`{"gpus":[{"uuid":"GPU-of-another","health":"unhealthy"},{"uuid":"` + n.ID + `-1","health":"unhealthy",` +
		`"evidence":[{"rule":"burn_in","detail":"a word differs","since":"2026-03-02T09:00:00Z"}]}]}`)
	w.pass(boot)
	require.Empty(t, w.readNodes(node.Ready))
	told := w.readEvents("node.unfit")
	require.Len(t, told, 1)
	require.Equal(t, "its daemon found before it was ready: GPU "+n.ID+"-1 is unhealthy: a word differs", told[0].Message)
	require.Equal(t, ledger.ReasonUnhealthyGPU, told[0].Reason)
}

// One whose driver is older than its pool demands is never ready, without await_daemons too; what is not told yet is
// awaited.
func TestANodeWithAnOldDriverIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, untold := range []string{`{"source":"none","gpus":[]}`, `{"source":"nvml","gpus":[]}`} {
		w := newWorld(t)
		n := w.bootDemanding("535.104")
		d := w.lookAt(n.ID)
		d.say(untold)
		w.pass(boot)
		require.Len(t, w.readNodes(node.Booting), 1, untold)
		d.say(`{"source":"nvml","driver":"535.98.01","gpus":[]}`)
		w.pass(boot)
		require.Empty(t, w.readNodes(node.Ready))
		told := w.readEvents("node.unfit")
		require.Len(t, told, 1)
		require.Equal(t, "its daemon found before it was ready: its driver is 535.98.01, and its pool demands "+
			"535.104 or newer",
			told[0].Message)
		require.Equal(t, ledger.ReasonOldDriver, told[0].Reason)
	}
}

// Machines of a kind whose image has an old driver are asked for twice: a third one would have it, too.
func TestOldDriversStopTheRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.bootDemanding("535.104")
	for range 2 {
		w.lookAt(n.ID).say(`{"source":"nvml","driver":"535.98.01","gpus":[]}`)
		for range 60 {
			if w.pass(time.Minute); len(w.readNodes(node.Booting)) > 0 && w.readNodes(node.Booting)[0].ID != n.ID {
				n = w.readNodes(node.Booting)[0]
				break
			}
		}
	}
	stopped := w.readEvents("pool.stopped")
	require.Len(t, stopped, 1)
	require.Equal(t, ledger.ReasonOldDriver, stopped[0].Reason)
	asked := len(w.readEvents("node.requested"))
	w.pass(24 * time.Hour)
	require.Len(t, w.readEvents("node.requested"), asked)
}

func TestANodeWithANewEnoughDriverIsReady(t *testing.T) {
	t.Parallel()
	for _, look := range []string{`{"source":"nvml","driver":"535.104.05","gpus":[]}`,
		`{"source":"simulated","driver":"SIM","gpus":[]}`} {
		w := newWorld(t)
		n := w.bootDemanding("535.104")
		w.pass(2 * boot)
		require.Len(t, w.readNodes(node.Booting), 1, "its daemon is awaited")
		w.lookAt(n.ID).say(look)
		w.pass(boot)
		require.Len(t, w.readNodes(node.Ready), 1, look)
	}
}

// What is no version is refused, and nothing of the pool changes.
func TestADriverThatIsNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.ledger.UpdatePool(t.Context(), operator, w.pool.ID, 1, func(p *capacity.Pool) { p.MinDriver = "newest" })
	refused, ok := errors.AsType[*ledger.InvalidError](err)
	require.True(t, ok, err)
	require.Equal(t, "min_driver", refused.Field)
}

// One whose daemon never comes is given up when a boot is that does not end.
func TestADaemonThatDoesNotCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.bootOne()
	w.pass(14 * time.Minute)
	require.Equal(t, node.Booting, w.readNodes(node.Booting)[0].State())
	w.pass(2 * time.Hour)
	for _, gone := range w.readNodes(node.Gone) {
		if gone.ID == n.ID {
			require.Equal(t, "boot_timeout", gone.Reason)
			return
		}
	}
	require.Fail(t, "it is still there")
}
