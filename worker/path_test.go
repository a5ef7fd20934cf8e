package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// The life of one promise, from the booking until the machine is proved gone.
func TestAPromiseIsWarmedClaimedAndCleanedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	r := w.reserveNode(20*time.Minute, 30*time.Minute)

	w.driveFor(10 * time.Minute)
	require.Empty(t, w.readNodes(), "a machine was made long before it is needed")
	w.driveFor(10*time.Minute - time.Second)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State(), "the promise was not warm at its start")

	a, err := w.ledger.Claim(t.Context(), w.actor, r.ID, 20*time.Minute, "training")
	require.NoError(t, err)
	require.Equal(t, allocation.Active, a.State())
	require.Len(t, a.Devices, 8)
	require.Equal(t, a.RequestedAt, a.ActiveAt, "a warm start waited")

	w.driveFor(5 * time.Minute)
	_, err = w.ledger.Release(t.Context(), w.actor, a.ID)
	require.NoError(t, err)
	w.driveFor(10 * time.Minute)
	w.requireOver(1)
}

// Times are stored in microseconds, and what is learned of boots is finer. A plan
// that woke before the instant it waits for would wake again at once, for ever
// where the clock does not move meanwhile.
func TestAPlanDoesNotWakeBeforeItsInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
	w.allocateNode() // a boot of some seconds and a fraction is learned
	w.driveFor(5 * time.Minute)
	w.endEverything()
	w.driveFor(5 * time.Minute)
	r := w.reserveNode(10*time.Minute, 30*time.Minute)
	w.driveFor(10 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	w.closeAndCheck()
}

// requireOver checks that nothing is left anywhere, after so many machines.
func (w *world) requireOver(machines int) {
	w.t.Helper()
	for _, n := range w.readNodes() {
		require.Equal(w.t, node.Gone, n.State(), "node %s", n.ID)
	}
	require.Len(w.t, w.readNodes(), machines)
	require.Empty(w.t, w.cloud.LivePerNode(), "machines are left")
	bill := w.cloud.Bill(w.clock.Now())
	require.Equal(w.t, machines, bill.Total.Machines, "machines on the bill")
	var known, billed []string
	for i, line := range bill.Lines {
		known, billed = append(known, w.readNodes()[i].ID), append(billed, line.NodeID)
	}
	require.ElementsMatch(w.t, known, billed)
	w.requireClean()
}

// A promise that waited for a place gets it as soon as there is one.
func TestAWaitlistedPromiseIsPromoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	full, waiting := w.bookPool()
	_, err := w.ledger.CancelReservation(t.Context(), w.actor, full)
	require.NoError(t, err)
	w.driveFor(time.Second)
	require.Equal(t, reservation.Booked, w.readReservation(waiting).State())
}

// bookPool books the whole pool and puts another request on the waitlist.
func (w *world) bookPool() (full, waiting string) {
	w.t.Helper()
	req := ledger.ReserveRequest{Pool: "a100", GPUs: 32, Queue: true,
		Window: windowFrom(w.clock.Now().Add(6*time.Hour), time.Hour)}
	var made []string
	for _, state := range []reservation.State{reservation.Booked, reservation.Waitlisted} {
		r, err := w.ledger.Reserve(w.t.Context(), w.actor, req)
		require.NoError(w.t, err)
		require.Equal(w.t, state, r.State())
		made = append(made, r.ID)
	}
	w.driveFor(time.Second)
	return made[0], made[1]
}
