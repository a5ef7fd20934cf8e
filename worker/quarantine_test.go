package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// quarantineFirst has an operator keep the first node for inspection.
func (w *world) quarantineFirst() node.Node {
	w.t.Helper()
	n, err := w.ledger.QuarantineNode(w.t.Context(), w.actor, w.readNodes()[0].ID, "")
	require.NoError(w.t, err)
	require.True(w.t, n.Kept())
	return n
}

// What an operator keeps for inspection stays, with whoever works on it, beyond
// every timer and its dead-man switch; nothing new comes to it, somebody is
// reminded of it, and its price has a line of its own.
func TestAQuarantinedNodeIsKept(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, mortalMachines())
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	n := w.quarantineFirst()
	w.driveFor(10 * time.Minute)
	w.requireActive(a)
	require.Contains(t, w.eventTypes(), "allocation.warned")
	_, err := w.ledger.Extend(t.Context(), w.actor, a.ID, 10*time.Minute)
	require.NoError(t, err, "what runs there may run on")
	b := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(b)
	require.NotEqual(t, w.readAllocation(a.ID).Slots, w.readAllocation(b.ID).Slots)

	w.driveFor(28 * time.Hour)
	require.Equal(t, allocation.Expired, w.readAllocation(a.ID).State(), "its lease ends as it would have")
	require.Equal(t, node.Quarantined, w.readNodes()[0].State())
	require.Equal(t, 1, w.countMachines()[n.ID], "its machine stands")
	require.Contains(t, w.eventTypes(), "node.still_quarantined")
	require.InDelta(t, float64(27*36*money.USD), float64(w.chargedFor(cost.Quarantine)), float64(3*36*money.USD))

	_, err = w.ledger.ResumeNode(t.Context(), w.actor, n.ID)
	require.NoError(t, err)
	w.driveFor(time.Second)
	require.Equal(t, node.Ready, w.readNodes()[0].State())
	w.requireBill()
	w.closeAndCheck()
}

// chargedFor is what the warm pool paid for a cause.
func (w *world) chargedFor(cause cost.Cause) (sum money.MicroUSD) {
	w.t.Helper()
	for _, l := range w.readCosts().Lines {
		if l.Cause == cause {
			sum += l.Amount
		}
	}
	return sum
}

// Promises leave a node that is kept, and its place is nobody's until it is back.
func TestPromisesLeaveAQuarantinedNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	slot := w.readAllocation(a.ID).Slots[0]
	r := w.reserveNode(2*time.Hour, time.Hour)
	if w.readReservation(r.ID).Slots[0] != slot {
		w.reserveNode(2*time.Hour, time.Hour)
	}
	w.quarantineFirst()
	for _, r := range w.liveReservations() {
		require.NotContains(t, r.Slots, slot)
	}
	_, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 32, Lease: time.Hour})
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused, "a pool has no more than what is not kept")
	w.closeAndCheck()
}

// A node that does not pass its health gate stays in quarantine, and can be given up.
func TestAKeptNodeThatIsUnfitDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sick := &ill{Provisioner: w.cloud}
	w.dress = func(provisioners.Provisioner) provisioners.Provisioner { return sick }
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	_, err := w.ledger.Release(t.Context(), w.actor, a.ID)
	require.NoError(t, err)
	n := w.quarantineFirst()
	sick.change = illnesses["gpu_model"]
	_, err = w.ledger.ResumeNode(t.Context(), w.actor, n.ID)
	require.NoError(t, err)
	w.driveFor(10 * time.Minute)
	require.Contains(t, w.eventTypes(), "node.resume_refused")
	require.Equal(t, node.Quarantined, w.readNodes()[0].State())
	_, err = w.ledger.DrainNode(t.Context(), w.actor, n.ID, "")
	require.NoError(t, err)
	w.driveFor(10 * time.Minute)
	require.Equal(t, node.Gone, w.readNodes()[0].State())
	w.closeAndCheck()
}
