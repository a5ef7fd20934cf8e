package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// skypilot-org/skypilot#1496: the row was dropped when a restart failed, and the stopped cluster leaked.
func TestIncident11ARowStaysUntilItsMachineIsGone(t *testing.T) {
	t.Parallel()
	w, cloud, a := newObservedWorld(t)
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	cloud.change = illnesses["gpu_count"]
	w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindTransient, Times: 6})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindDenied, Times: 2})
	b := w.allocateNode()
	w.driveFor(8 * time.Minute)
	require.Contains(t, w.nodeStates(), node.Deprovisioning)
	require.Len(t, w.countMachines(), 1, "the ill machine stands as long as it cannot be ended")
	require.NotEqual(t, allocation.Active, w.readAllocation(b.ID).State())
	cloud.change = nil
	w.closeAndCheck()
}

// skypilot-org/skypilot#509: the end of a cluster of several nodes left some.
func TestIncident12AllNodesOfAGangAreEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	gang, err := w.ledger.Allocate(t.Context(), w.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 32, Lease: time.Hour})
	require.NoError(t, err)
	w.driveFor(5 * time.Minute)
	w.requireActive(gang)
	for _, f := range []sim.Fault{
		{Op: sim.OpDelete, Effect: sim.Ignore, Times: 2},
		{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindThrottled, RetryAfter: time.Second},
		{Op: sim.OpDelete, Effect: sim.ExecuteAndTimeout},
		{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 3},
	} {
		w.injectFault(f)
	}
	w.endEverything()
	w.driveFor(20 * time.Minute)
	w.requireOver(4)
}

// skypilot-org/skypilot#10517: the endpoint of the list was retired and answered "no instances";
// new ones were launched on and on.
func TestIncident13AnEmptyListLaunchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := func(provisioners.List, error) provisioners.List { return provisioners.List{Complete: true} }
	w.startWorker(parts{cloud: hooked{Provisioner: w.cloud, list: none}})
	a := w.allocateNode()
	w.driveFor(40 * time.Minute)
	w.requireActive(a)
	require.Len(t, w.readNodes(), 1)
	w.closeAndCheck()
	w.requireOver(1)
}

// aws/aws-parallelcluster-node#694: healthy nodes were ended as orphans after an incomplete list.
func TestIncident14AnIncompleteListEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	var all []allocation.Allocation
	for range 4 {
		all = append(all, w.allocateNode())
	}
	w.injectFault(sim.Fault{Op: sim.OpList, Effect: sim.Truncate, Times: 1000})
	w.driveFor(40 * time.Minute)
	for _, a := range all {
		w.requireActive(a)
	}
	require.NotContains(t, w.eventTypes(), "sweep.orphan_terminated")
	w.closeAndCheck()
	w.requireOver(4)
}

// dstackai/dstack#1551: an instance was marked as terminated while the network was off, and stood.
func TestIncident15NothingIsGoneWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	for _, op := range []sim.Op{sim.OpGet, sim.OpList, sim.OpDelete} {
		w.injectFault(sim.Fault{Op: op, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 10_000})
	}
	w.endEverything()
	w.driveFor(30 * time.Minute)
	require.Len(t, w.countMachines(), 1)
	require.NotContains(t, w.nodeStates(), node.Gone)
	w.closeAndCheck()
	w.requireOver(1)
}

// dstackai/dstack#4030: failures of a termination were ignored.
func TestIncident16AFailedTerminationIsSeenAndRepeated(t *testing.T) {
	t.Parallel()
	for _, kind := range []provisioners.Kind{provisioners.KindDenied, provisioners.KindBadSpec,
		provisioners.KindQuota} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := usualSite()
			s.ledger.RemoveEvery = time.Second
			w := buildWorld(t, s)
			w.startWorker(parts{})
			w.allocateNode()
			w.driveFor(5 * time.Minute)
			w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: kind, Times: 12})
			w.endEverything()
			w.driveFor(20 * time.Minute)
			require.Contains(t, w.eventTypes(), "node.needs_attention")
			w.closeAndCheck()
			w.requireOver(1)
		})
	}
}

// dstackai/dstack#2068: a run was cancelled while its instance was made, which stayed busy for ever.
func TestIncident17CancelledWhileProvisioningTheNodeIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second, time.Minute, 80 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{})
			w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
			w.allocateNode()
			w.driveFor(after)
			w.endEverything()
			w.driveFor(15 * time.Minute)
			w.closeAndCheck()
		})
	}
}

// dstackai/dstack#890: the idle timer stopped an instance on which a job ran.
func TestIncident18AClaimAtTheEndOfIdlenessHolds(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{time.Second, time.Microsecond, 0} {
		t.Run(before.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{})
			w.allocateNode()
			w.driveFor(5 * time.Minute)
			w.endEverything()
			w.driveFor(time.Minute - before) // its pool releases what was idle for a minute
			if before == 0 {
				require.NotContains(t, w.nodeStates(), node.Ready)
			}
			a := w.allocateNode()
			w.driveFor(5 * time.Minute)
			w.requireActive(a)
			w.driveFor(54 * time.Minute)
			w.requireActive(a)
			w.closeAndCheck()
		})
	}
}

// kubermatic/machine-controller#581, kubernetes-sigs/cluster-api-provider-cloudstack#190: the
// object was deleted before its finalizer was there, and the machine stayed.
func TestIncident19RetiredDuringItsCreationTheMachineIsRemoved(t *testing.T) {
	t.Parallel()
	for _, timesOut := range []bool{false, true} {
		t.Run(fmt.Sprint("times out ", timesOut), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if timesOut {
				w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
			}
			w.startWorker(parts{cloud: hooked{Provisioner: w.cloud, before: firstTimes(1, func() {
				w.endEverything()
				w.retireNode(w.readNodes()[0])
			})}})
			w.allocateNode()
			w.driveFor(10 * time.Minute)
			w.closeAndCheck()
			w.requireOver(1)
		})
	}
}

// coder/coder#4586, #15461: a build that was cancelled left what it had made at the cloud.
func TestIncident20CancelledAtAnyStageNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, stage := range []time.Duration{0, time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		t.Run(stage.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{})
			r := w.reserveNode(3*time.Minute, 30*time.Minute)
			w.driveFor(stage)
			_, err := w.ledger.CancelReservation(t.Context(), w.actor, r.ID)
			require.NoError(t, err)
			w.startWorker(parts{}) // whoever was at work is gone with all that it knew
			w.driveFor(15 * time.Minute)
			require.Equal(t, reservation.Cancelled, w.readReservation(r.ID).State())
			w.closeAndCheck()
		})
	}
}

// dstackai/dstack#3031, kubermatic/kubermatic#903: the end of an instance that was gone already was an error for ever.
func TestIncident21WhatIsGoneAlreadyIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	require.NoError(t, w.cloud.Kill(w.readNodes()[0].ProviderID))
	_, err := w.ledger.Release(t.Context(), w.actor, a.ID)
	require.NoError(t, err)
	w.driveFor(6 * time.Minute)
	w.requireOver(1)
}

// kubermatic/machine-controller#131: what was never created could not be deleted, because its
// deletion looked for it first.
func TestIncident22WhatWasNeverCreatedIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 1000})
	w.allocateNode()
	w.driveFor(time.Minute)
	w.endEverything()
	w.retireNode(w.readNodes()[0])
	w.driveFor(5 * time.Minute)
	require.Equal(t, []node.State{node.Gone}, w.nodeStates())
	w.closeAndCheck()
	require.Zero(t, w.cloud.Bill(w.clock.Now()).Total.Machines)
}

// kubermatic/machine-controller#345: the finalizer was removed before the instance was gone.
func TestIncident23AMachineThatEndsSlowlyIsNotGoneBefore(t *testing.T) {
	t.Parallel()
	s := usualSite()
	s.cloud.Terminating = 40 * time.Minute
	w := buildWorld(t, s)
	w.startWorker(parts{})
	w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.endEverything()
	w.driveFor(35 * time.Minute)
	require.NotContains(t, w.nodeStates(), node.Gone)
	w.closeAndCheck()
	w.requireOver(1)
}

// coder/coder#2961, #3844: what could not be deleted was given up with a button, and stood on.
func TestIncident24WhatNeedsAttentionIsTriedForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindDenied, Times: 10_000})
	w.endEverything()
	w.driveFor(12 * time.Hour)
	require.Equal(t, []node.State{node.NeedsAttention}, w.nodeStates())
	w.requireBill() // it is charged as long as it stands
	w.cloud.ClearFaults(sim.OpDelete)
	w.driveFor(2 * time.Hour)
	w.requireOver(1)
}
