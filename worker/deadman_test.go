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
	s := usual()
	s.ledger.DeadMan, s.ledger.VerifyEvery = deadMan, time.Minute
	return s
}

// A machine is renewed when half of its time is over, also by a provider that has
// to be asked several times.
func TestMachinesAreRenewedAtHalfTime(t *testing.T) {
	t.Parallel()
	w := build(t, mortalMachines())
	w.start(parts{})
	a := w.ask()
	w.drive(9 * time.Minute)
	require.Equal(t, start.Add(deadMan), w.nodes()[0].ExpiresAt)
	w.drive(3 * time.Minute)
	require.WithinRange(t, w.nodes()[0].ExpiresAt, start.Add(10*time.Minute+deadMan), start.Add(11*time.Minute+deadMan))
	w.inject(sim.Fault{Op: sim.OpRenew, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 5})
	w.drive(45 * time.Minute)
	w.requireActive(a)
	w.close()
	w.requireOver(1)
}

// A control plane that is away for longer leaves no machine standing. When it is
// back it finds that out, and charges until the end. (A provider that has forgotten
// by then when that was leaves no better end than when the ledger found out.)
func TestADeadControlPlaneLeavesNoMachines(t *testing.T) {
	t.Parallel()
	s := mortalMachines()
	s.cloud.Remembered = 24 * time.Hour
	w := build(t, s)
	w.start(parts{})
	a, err := w.ledger.Allocate(t.Context(), w.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 16, Lease: 12 * time.Hour})
	require.NoError(t, err)
	w.drive(25 * time.Minute)
	w.requireActive(a)
	require.Len(t, w.live(), 2)

	w.clock.Advance(2 * time.Hour)
	require.Empty(t, w.live(), "machines stand although nobody is there")
	w.start(parts{})
	w.drive(10 * time.Minute)
	require.Equal(t, allocation.Failed, w.allocation(a.ID).State())
	require.Contains(t, w.history(), "node.lost")
	require.Equal(t, []node.State{node.Gone, node.Gone}, w.states())
	w.close()
}

// endless is a provider that gives machines no dead-man switch.
type endless struct{ provisioners.Provisioner }

// What would not happen is not said to: a machine without a dead-man switch does
// not end by itself.
func TestAMachineWithoutASwitchHasNoEnd(t *testing.T) {
	t.Parallel()
	w := build(t, mortalMachines())
	w.start(parts{cloud: endless{w.cloud}})
	w.ask()
	w.drive(9 * time.Minute)
	require.Zero(t, w.nodes()[0].ExpiresAt)
}
