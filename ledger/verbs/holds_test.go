package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Work of two organizations is on one node at once only if the node keeps them apart as well
// as the pool asks; otherwise the later one waits until the other's is over and cleaned up.
func TestOrganizationsShareANodeThatKeepsThemApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	ours, theirs := w.mustAllocate(ann, 1), w.mustAllocate(bob, 1)
	w.pass(boot)
	on := w.readNodes(node.Ready)
	require.Len(t, on, 1, "they hold one GPU each of the same node")
	open := func(by ledger.Actor, id string, is capacity.Isolation) error {
		return w.ledger.OpenHold(t.Context(), by, id, on[0].ID, is)
	}
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment), "nobody else's work is there")
	for _, is := range []capacity.Isolation{"", capacity.IsolationEnvironment} {
		var shared *ledger.SharedNodeError
		require.ErrorAs(t, open(bob, theirs.ID, is), &shared)
		require.Equal(t, ledger.SharedNodeError{NodeID: on[0].ID, Isolation: is}, *shared)
	}
	require.Empty(t, w.readAllocation(theirs.ID).Opened)
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment), "it is there already")

	w.changePool(func(p *capacity.Pool) { p.Isolation = capacity.IsolationDevices })
	require.Error(t, open(bob, theirs.ID, capacity.IsolationUser))
	w.changePool(func(p *capacity.Pool) { p.Isolation = capacity.IsolationEnvironment })
	require.NoError(t, open(bob, theirs.ID, capacity.IsolationEnvironment))
	w.changePool(func(p *capacity.Pool) { p.Isolation = "" })
	require.Error(t, open(ann, ours.ID, capacity.IsolationEnvironment), "a node that keeps them apart no more")
	require.NoError(t, open(ann, ours.ID, capacity.IsolationUser))

	daemon := w.lookAt(on[0].ID).daemon
	_, err := w.ledger.Release(t.Context(), bob, theirs.ID)
	require.NoError(t, err)
	require.Error(t, open(ann, ours.ID, capacity.IsolationEnvironment), "what bob left may be there still")
	w.proveClean(daemon, ledger.Cleaned{AllocationID: theirs.ID, Proof: "nothing is left"})
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment))
}

// A node that is taken back into use before it was proved clean proves it first, or is out
// of use again.
func TestAResumedNodeIsProvedCleanBeforeItIsGivenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resizePool(1)
	ann, bob, carol := w.newPerson("ann"), w.newPerson("bob"), w.newPerson("carol")
	ours := w.mustAllocate(ann, 1)
	w.mustAllocate(bob, 1)
	w.pass(boot)
	on := w.readNodes(node.Ready)[0].ID
	daemon := w.lookAt(on).daemon
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationDevices))
	_, err := w.ledger.Release(t.Context(), ann, ours.ID)
	require.NoError(t, err)
	w.pass(learned.CleanWithin + time.Second)
	require.Len(t, w.readNodes(node.Quarantined), 1)
	for i := range 2 { // an operator believes it, and is wrong
		require.Len(t, w.readEvents("allocation.not_cleaned"), i+1)
		w.ledger = w.restartedLedger() // as the server is not the worker that gave it up
		_, err = w.ledger.ResumeNode(t.Context(), operator, on)
		require.NoError(t, err)
		w.pass(time.Minute)
		require.Len(t, w.readNodes(node.Ready), 1)
		_, err = w.ledger.Allocate(t.Context(), carol, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
		require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err))
		w.pass(learned.CleanWithin)
		require.Len(t, w.readNodes(node.Quarantined), 1)
	}
	_, err = w.ledger.ResumeNode(t.Context(), operator, on)
	require.NoError(t, err)
	w.pass(time.Minute)
	w.proveClean(daemon, ledger.Cleaned{AllocationID: ours.ID, Proof: "nothing is left"})
	w.doDueWork()
	next := w.mustAllocate(carol, 1)
	w.pass(time.Second)
	require.Equal(t, ours.Slots, w.readAllocation(next.ID).Slots)
	require.Equal(t, allocation.Active, w.readAllocation(next.ID).State())
}

// A node that is given up is cleaned before it goes: its machine may be there for the next.
func TestADrainedNodeIsCleanedBeforeItGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	ours := w.mustAllocate(ann, 2)
	w.pass(boot)
	on := w.readNodes(node.Ready)[0].ID
	daemon := w.lookAt(on).daemon
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationDevices))
	_, err := w.ledger.DrainNode(t.Context(), operator, on, "")
	require.NoError(t, err)
	_, err = w.ledger.Release(t.Context(), ann, ours.ID)
	require.NoError(t, err)
	w.pass(10 * time.Second)
	require.Len(t, w.readNodes(node.Draining), 1)
	w.proveClean(daemon, ledger.Cleaned{AllocationID: ours.ID, Proof: "nothing is left"})
	w.doDueWork()
	require.Empty(t, w.readNodes(node.Draining))
}

// The free GPUs of a node that is drained and held are promised to nobody before it is gone.
func TestADrainedNodeThatIsHeldHasNoRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resizePool(1)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	held := w.allocateFor(ann, 1, time.Hour)
	w.pass(boot)
	until := w.readAllocation(held.ID).LeaseUntil
	_, err := w.ledger.DrainNode(t.Context(), operator, w.readNodes(node.Ready)[0].ID, "")
	require.NoError(t, err)
	for _, window := range []calendar.Interval{w.windowAfter(0, 10*time.Minute),
		w.windowAfter(50*time.Minute, 2*time.Hour)} {
		_, err = w.ledger.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
		require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err), "%s", window)
	}
	_, err = w.ledger.Allocate(t.Context(), bob, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err))
	w.mustReserve(bob, 2, calendar.Interval{Start: until.Add(10 * time.Minute), End: until.Add(time.Hour)})

	_, err = w.ledger.Release(t.Context(), ann, held.ID)
	require.NoError(t, err)
	w.pass(boot)
	w.allocateFor(bob, 1, 30*time.Minute)
}

// It does not wait for a daemon that is away for ever.
func TestADrainedNodeGoesWithoutAProofThatIsTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	ours := w.mustAllocate(ann, 2)
	w.pass(boot)
	on := w.readNodes(node.Ready)[0].ID
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationDevices))
	_, err := w.ledger.DrainNode(t.Context(), operator, on, "")
	require.NoError(t, err)
	_, err = w.ledger.Release(t.Context(), ann, ours.ID)
	require.NoError(t, err)
	w.pass(learned.CleanWithin + time.Second)
	require.Empty(t, w.readNodes(node.Draining))
	require.Len(t, w.readEvents("allocation.not_cleaned"), 1)
}

// A daemon is told how long the leases of its holds go on, and of one that is over that it ends, and no time.
func TestADaemonIsToldTheLeasesOfItsHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	ours := w.mustAllocate(ann, 2)
	w.pass(boot)
	on := w.readNodes(node.Ready)[0].ID
	daemon := w.lookAt(on).daemon
	said := ledger.NodeReport{Isolation: capacity.IsolationUser, Holds: []string{ours.ID, "alc_unknown"}}
	require.Empty(t, w.settle(daemon, said).Leases, "nothing of it was opened there")
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationDevices))
	left := w.readAllocation(ours.ID).LeaseUntil.Sub(w.clock.Now())
	require.Equal(t, []ledger.Lease{{AllocationID: ours.ID, Left: left}}, w.settle(daemon, said).Leases)
	_, err := w.ledger.Extend(t.Context(), ann, ours.ID, time.Hour)
	require.NoError(t, err)
	loud := said // one that is settled in a transaction says the same
	loud.Cleaned = []ledger.Cleaned{{AllocationID: "alc_earlier"}}
	require.Equal(t, []ledger.Lease{{AllocationID: ours.ID, Left: left + time.Hour}}, w.settle(daemon, loud).Leases)
	w.clock.Advance(left + time.Hour)
	told := w.settle(daemon, said)
	require.Empty(t, told.Leases)
	require.Equal(t, []string{ours.ID, "alc_unknown"}, told.Ended)
}
