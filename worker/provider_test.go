package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

func (w *world) injectFault(f sim.Fault) {
	w.t.Helper()
	f.Times = max(1, f.Times)
	require.NoError(w.t, w.cloud.Inject(f))
}

// Every call of the port may fail a few times, before or after it did what was
// asked, and the life goes on to the same end.
func TestAProviderMayFailAFewTimesAnywhere(t *testing.T) {
	t.Parallel()
	var faults []sim.Fault
	for _, op := range []sim.Op{sim.OpCreate, sim.OpGet, sim.OpList, sim.OpDelete} {
		for _, kind := range []provisioners.Kind{provisioners.KindTransient, provisioners.KindUnknown,
			provisioners.KindThrottled} {
			faults = append(faults, sim.Fault{Op: op, Effect: sim.FailBefore, Kind: kind, RetryAfter: time.Second})
		}
	}
	faults = append(faults,
		sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout},
		sim.Fault{Op: sim.OpDelete, Effect: sim.ExecuteAndTimeout},
		sim.Fault{Op: sim.OpDelete, Effect: sim.Ignore},
		sim.Fault{Op: sim.OpList, Effect: sim.Truncate},
		sim.Fault{Op: sim.OpGet, Effect: sim.Deny},
	)
	for _, f := range faults {
		t.Run(fmt.Sprintf("%s %s %s", f.Op, f.Effect, f.Kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{})
			f.Times = 2
			w.injectFault(f)
			w.livePromise()
			w.requireOnce()
		})
	}
}

// newHeldWorld is a world with an active allocation on its one machine.
func newHeldWorld(t *testing.T) (*world, allocation.Allocation) {
	t.Helper()
	w := newWorld(t)
	w.config = ledger.Config{}
	w.ledger = verbs.New(w.store, w.ids, w.config)
	w.startWorker(parts{})
	a, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Hour})
	require.NoError(t, err)
	w.driveFor(5 * time.Minute)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	return w, a
}

// A machine that works is not given up because its provider once did not know
// it, nor because of a list that was cut off: kubernetes-sigs/cluster-api-provider-aws#2915,
// aws/aws-parallelcluster-node#694.
func TestNotFoundForALiveMachineIsNotBelieved(t *testing.T) {
	t.Parallel()
	w, a := newHeldWorld(t)
	for range 5 {
		w.injectFault(sim.Fault{Op: sim.OpGet, Effect: sim.Deny})
		w.injectFault(sim.Fault{Op: sim.OpList, Effect: sim.Truncate})
		w.driveFor(4 * time.Minute)
	}
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	require.Equal(t, []node.State{node.Ready}, w.nodeStates())
	require.Len(t, w.cloud.LivePerNode(), 1)
}

// A machine that its provider took away is noticed, its holder is told, and the
// node ends by the provider's word.
func TestAMachineThatDiedIsNoticed(t *testing.T) {
	t.Parallel()
	w, a := newHeldWorld(t)
	require.NoError(t, w.cloud.Kill(w.readNodes()[0].ProviderID))
	w.driveFor(5 * time.Minute)
	require.Equal(t, allocation.Failed, w.readAllocation(a.ID).State())
	w.driveFor(5 * time.Minute)
	w.requireOver(1)
}

// A provider without stock gets no machine made, and is asked again later.
func TestAStockOutIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindCapacity})
	a, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Hour})
	require.NoError(t, err)
	w.driveFor(2 * time.Minute)
	require.Equal(t, []node.State{node.Failed}, w.nodeStates())
	w.driveFor(10 * time.Minute)
	require.Equal(t, []node.State{node.Failed, node.Ready}, w.nodeStates())
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	require.Equal(t, 1, w.cloud.Bill(w.clock.Now()).Total.Machines)
}

// A machine that never comes up is given up, removed and replaced.
func TestABootThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.BootNever})
	_, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Hour})
	require.NoError(t, err)
	w.driveFor(30 * time.Minute)
	require.Equal(t, []node.State{node.Gone, node.Ready}, w.nodeStates())
	require.Len(t, w.cloud.LivePerNode(), 1)
}

// A machine that survives every attempt to remove it is a person's business, and
// is tried for ever.
func TestAMachineThatCannotBeRemovedCallsForAPerson(t *testing.T) {
	t.Parallel()
	w, a := newHeldWorld(t)
	w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindDenied, Times: 20})
	_, err := w.ledger.Release(t.Context(), w.actor, a.ID)
	require.NoError(t, err)
	w.driveFor(30 * time.Minute)
	require.Equal(t, []node.State{node.NeedsAttention}, w.nodeStates())
	require.Len(t, w.cloud.LivePerNode(), 1)
	w.driveFor(90 * time.Minute)
	w.requireOver(1)
}

// A creation that was never answered may have made a machine. When its node is
// not wanted any more, the machine is found by its tag and removed; to ask for it
// again by its token could make it.
func TestTheMachineOfAnUnansweredCreationIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprintf("made %t", made), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{})
			_, err := w.ledger.Allocate(t.Context(), w.actor,
				ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Minute})
			require.NoError(t, err)
			if made {
				w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
			}
			w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown,
				Times: 1000})
			w.driveFor(time.Minute)
			require.Equal(t, []node.State{node.Provisioning}, w.nodeStates())
			w.retireNode(w.readNodes()[0])
			w.driveFor(10 * time.Minute)
			require.Equal(t, node.Gone, w.nodeStates()[0])
			require.Zero(t, w.cloud.LivePerNode()[w.readNodes()[0].ID])
		})
	}
}

// A provider that shows nothing of a machine once it is gone is believed that an
// adopted one is, too.
func TestAnAdoptedMachineThatItsProviderForgetsIsGone(t *testing.T) {
	t.Parallel()
	s := usualSite()
	s.cloud.Remembered = time.Microsecond
	w := buildWorld(t, s)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 1000})
	w.allocateNode()
	w.driveFor(time.Minute)
	w.endEverything()
	w.retireNode(w.readNodes()[0])
	w.driveFor(10 * time.Minute)
	require.Equal(t, []node.State{node.Gone}, w.nodeStates())
	require.Empty(t, w.countMachines())
}

// A provider that denies twice, and far enough apart, a machine that it was told to
// end and did not, is believed. The sweep finds the machine, ends it, and its node
// pays for it until then.
func TestAMachineThatWasWronglyBelievedGoneIsEndedAndCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.Ignore, Times: 2})
	w.injectFault(sim.Fault{Op: sim.OpGet, Effect: sim.Deny, Times: 2})
	w.endEverything()
	w.driveFor(4 * time.Minute)
	require.Equal(t, []node.State{node.Gone}, w.nodeStates())
	require.Len(t, w.countMachines(), 1)
	w.driveFor(30 * time.Minute)
	w.requireOver(1)
}

// retireNode has a node removed, as the planner does.
func (w *world) retireNode(n node.Node) {
	w.t.Helper()
	require.NoError(w.t, w.store.InTx(w.t.Context(), func(tx ledger.Tx) error {
		n, err := n.Apply(node.Retire, "test", tx.Now())
		if err != nil {
			return err
		}
		return tx.Save(ledger.Change{Nodes: []node.Node{n}, Revisions: map[string]int64{n.PoolID: 1},
			Tasks: []ledger.Task{{
				ID: w.ids.New(ids.Task), Kind: ledger.TaskDeleteNode, Subject: n.ID, RunAt: tx.Now(),
				CreatedAt: tx.Now(),
			}}})
	}))
}
