package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	w.mustAllocate(w.newPerson("ann"), 1)
	w.doDueWork()
	nodes := w.readNodes(node.Booting)
	require.Len(w, nodes, 1)
	_, err := w.ledger.IssueJoinToken(w.Context(), operator, nodes[0].ID, ledger.NewSecret{ID: "first", Hash: []byte{1}},
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
