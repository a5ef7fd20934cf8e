package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

const deadMan = 20 * time.Minute

func mortalMachines() site {
	s := usualSite()
	s.ledger.DeadMan, s.ledger.VerifyEvery = deadMan, time.Minute
	return s
}

// A machine is renewed when half of its time is over, also by a provider that has
// to be asked several times.
func TestMachinesAreRenewedAtHalfTime(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, mortalMachines())
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(9 * time.Minute)
	require.Equal(t, start.Add(deadMan), w.readNodes()[0].ExpiresAt)
	w.driveFor(3 * time.Minute)
	require.WithinRange(t, w.readNodes()[0].ExpiresAt, start.Add(10*time.Minute+deadMan),
		start.Add(11*time.Minute+deadMan))
	w.injectFault(sim.Fault{Op: sim.OpRenew, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 5})
	w.driveFor(45 * time.Minute)
	w.requireActive(a)
	w.closeAndCheck()
	w.requireOver(1)
}

// A control plane that is away for longer leaves no machine standing. When it is
// back it finds that out, and charges until the end. (A provider that has forgotten
// by then when that was leaves no better end than when the ledger found out.)
func TestADeadControlPlaneLeavesNoMachines(t *testing.T) {
	t.Parallel()
	s := mortalMachines()
	s.cloud.Remembered = 24 * time.Hour
	w := buildWorld(t, s)
	w.startWorker(parts{})
	a, err := w.ledger.Allocate(t.Context(), w.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 16, Lease: 12 * time.Hour})
	require.NoError(t, err)
	w.driveFor(25 * time.Minute)
	w.requireActive(a)
	require.Len(t, w.countMachines(), 2)

	w.clock.Advance(2 * time.Hour)
	require.Empty(t, w.countMachines(), "machines stand although nobody is there")
	w.startWorker(parts{})
	w.driveFor(10 * time.Minute)
	require.Equal(t, allocation.Failed, w.readAllocation(a.ID).State())
	require.Contains(t, w.eventTypes(), "node.lost")
	require.Equal(t, []node.State{node.Gone, node.Gone}, w.nodeStates())
	w.closeAndCheck()
}

// endless is a provider that gives machines no dead-man switch.
type endless struct{ provisioners.Provisioner }

// What would not happen is not said to: a machine without a dead-man switch does
// not end by itself.
func TestAMachineWithoutASwitchHasNoEnd(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, mortalMachines())
	w.startWorker(parts{cloud: endless{w.cloud}})
	w.allocateNode()
	w.driveFor(9 * time.Minute)
	require.Zero(t, w.readNodes()[0].ExpiresAt)
}
