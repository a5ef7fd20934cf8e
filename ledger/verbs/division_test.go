package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// isolate has the daemons of all nodes say how well these keep holders apart.
func (w *world) isolate(is capacity.Isolation) {
	w.Helper()
	for _, n := range w.readNodes(node.Ready) {
		_, err := w.ledger.RecordBeat(w.Context(), w.joined[n.ID], ledger.Beat{BootID: "boot", Epoch: 1,
			Look: []byte("{}"), Isolation: is})
		require.NoError(w, err)
	}
	w.doDueWork()
}

// Who allocates gets nodes that let its work in, as long as there are any: the tightest one has another organization.
func TestHandAllocationsPreferNodesThatLetTheirWorkIn(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	w.isolate(capacity.IsolationEnvironment)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	ours := w.mustAllocate(ann, 1)
	theirs := w.mustAllocate(bob, 1)
	require.NotEqual(t, ours.Slots, theirs.Slots, "the node would not let them in both")
	require.Equal(t, ours.Slots, w.mustAllocate(ann, 1).Slots, "its own organization shares it")
	w.mustAllocate(ann, 4)
	require.Equal(t, theirs.Slots, w.mustAllocate(ann, 1).Slots, "there is no other")

	w = newDaemons(t)
	w.isolate(capacity.IsolationUser)
	ann, bob = w.newPerson("ann"), w.newPerson("bob")
	require.Equal(t, w.mustAllocate(ann, 1).Slots, w.mustAllocate(bob, 1).Slots, "it keeps them apart")
}

// A job does not start where another organization is whom the node does not keep it apart from: it would be refused
// there, again and again.
func TestJobsStayOffNodesThatDoNotLetThemIn(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	w.isolate(capacity.IsolationEnvironment)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	var held []string
	for range 4 {
		held = append(held, w.mustAllocate(ann, 2).ID)
	}
	for _, id := range held[:2] {
		_, err := w.ledger.Release(t.Context(), ann, id)
		require.NoError(t, err)
	}
	w.doDueWork()
	alone := w.mustAllocate(ann, 1)
	apart := w.submit(bob, jobOf(1, nil))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(apart.ID).State())
	require.NotEqual(t, w.slotsOf(apart.ID), w.readAllocation(held[0]).Slots)
	fits := w.submit(bob, jobOf(1, nil))
	w.doDueWork()
	require.Equal(t, w.slotsOf(apart.ID), w.slotsOf(fits.ID), "beside one's own")
	barred := w.submit(bob, jobOf(1, nil))
	brief := func(c *ledger.JobCommand) { c.Job.MaxRuntime = 10 * time.Minute } // over before what barred is promised
	own := w.submit(ann, jobOf(1, brief))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(barred.ID).State(), "a GPU was free, where ann is")
	require.Equal(t, job.Scheduled, w.readJob(own.ID).State())
	says := w.blockerOf(bob, barred.ID, "isolation")
	require.Equal(t, "It does not start on 3 nodes of its pool: another organization is there, and the pool asks "+
		"for the isolation user where two share a node.", says.Message)
	require.Contains(t, says.Evidence[0], ": its isolation is environment")
	require.Empty(t, w.blockerOf(ann, own.ID, "isolation"))

	w.isolate(capacity.IsolationUser)
	_, err := w.ledger.Release(t.Context(), ann, alone.ID)
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, w.slotsOf(own.ID), w.slotsOf(barred.ID), "the nodes keep them apart now")
}

// Who holds GPUs of a node that does not let its work in is told so, and so is who asks why of a node whose daemon is
// silent.
func TestHoldersAreToldOfNodesThatTheyCannotEnter(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	w.isolate(capacity.IsolationEnvironment)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	w.mustAllocate(ann, 6)
	ours := w.mustAllocate(ann, 1)
	theirs := w.mustAllocate(bob, 1)
	on := theirs.Devices[0].NodeID
	why := func(who ledger.Actor, id string) (codes []string) {
		e, err := w.ledger.ExplainAllocation(t.Context(), who, id)
		require.NoError(t, err)
		for _, b := range e.Blockers {
			codes = append(codes, b.Code)
		}
		return codes
	}
	barred := func(who ledger.Actor, id string) (is bool) {
		of := w.readAllocation(id)
		w.read(func(r ledger.Reader) error {
			found, err := ledger.AccessTo(r, who, of)
			is = found.Nodes[0].Barred
			return err
		})
		return is
	}
	require.Equal(t, ours.Slots, theirs.Slots)
	require.Empty(t, why(bob, theirs.ID), "nobody has begun anything there")
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationEnvironment))
	require.Equal(t, []string{"isolation"}, why(bob, theirs.ID))
	require.True(t, barred(bob, theirs.ID))
	require.Empty(t, why(ann, ours.ID))
	require.False(t, barred(ann, ours.ID))

	w.silent[on] = true
	w.pass(3 * time.Minute)
	require.Equal(t, []string{ledger.WaitsForDaemon}, why(ann, ours.ID))
	of, err := w.ledger.ExplainNode(t.Context(), operator, on)
	require.NoError(t, err)
	require.Equal(t, ledger.WaitsForDaemon, of.Blockers[0].Code)
	require.Contains(t, of.Blockers[0].Evidence[0], "has been silent since")
}

// Who holds GPUs of a node where others' work is that it is not let in beside keeps these from nothing.
func TestWhoIsNotLetInBarsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	big := w.addPool("big", money.USD, func(p *capacity.Pool) { p.PerNode, p.MaxNodes = 4, 1 })
	on := w.warmIn(big).ID
	w.joinedDaemons()
	w.isolate(capacity.IsolationEnvironment)
	take := func(who ledger.Actor) string {
		a, err := w.ledger.Allocate(t.Context(), who, ledger.AllocateRequest{Pool: "big", GPUs: 1})
		require.NoError(t, err)
		return a.ID
	}
	theirs := take(bob)
	require.NoError(t, w.ledger.OpenHold(t.Context(), bob, theirs, on, capacity.IsolationEnvironment))
	take(ann)
	inBig := func(c *ledger.JobCommand) { c.Needs.Pool, c.Job.MaxRuntime = "big", 10*time.Minute }
	barred, own := w.submit(ann, jobOf(1, inBig)), w.submit(bob, jobOf(1, inBig))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(barred.ID).State())
	require.Equal(t, job.Scheduled, w.readJob(own.ID).State())
}
