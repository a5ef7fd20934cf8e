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

// label changes the labels and taints of a node.
func (w *world) label(n node.Node, c ledger.NodeChange) node.Node {
	w.Helper()
	for _, is := range w.readNodes() {
		if is.ID == n.ID {
			n = is
		}
	}
	out, err := w.ledger.UpdateNode(w.Context(), operator, n.ID, n.Version, c)
	require.NoError(w, err)
	return out
}

func TestNodesAreLabelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	n := w.readNodes(node.Ready)[0]
	first := w.label(n, ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}, Taints: []string{"old", "b", "old"}})
	require.Equal(t, []string{"b", "old"}, first.Taints, "sorted, each once")
	require.Equal(t, first, w.readNodes(node.Ready)[0])

	second := w.label(n, ledger.NodeChange{Taints: []string{}})
	require.Equal(t, first.Labels, second.Labels, "what is not named stays")
	require.Empty(t, second.Taints)

	_, err := w.ledger.UpdateNode(t.Context(), operator, n.ID, first.Version, ledger.NodeChange{})
	require.ErrorIs(t, err, ledger.ErrConflict)
	_, err = w.ledger.UpdateNode(t.Context(), w.newPerson("ann"), n.ID, second.Version, ledger.NodeChange{})
	require.ErrorIs(t, err, ledger.ErrDenied)
	for _, c := range []ledger.NodeChange{{Labels: map[string]string{"a b": ""}}, {Labels: map[string]string{"a": "-"}},
		{Labels: map[string]string{"": "x"}}, {Taints: []string{"a=b"}}, {Taints: []string{""}}} {
		_, err = w.ledger.UpdateNode(t.Context(), operator, n.ID, second.Version, c)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, c)
	}
}

// slotsOf are where a job runs, or is going to.
func (w *world) slotsOf(id string) []int {
	w.Helper()
	j := w.readJob(id)
	var slots []int
	w.read(func(r ledger.Reader) error {
		a, err := r.Allocation(ledger.Scope{All: true}, j.AllocationID)
		slots = a.Slots
		return err
	})
	return slots
}

// where changes on which nodes a job may run.
func where(x job.Where) func(*ledger.JobCommand) {
	return func(c *ledger.JobCommand) { c.Job.Where = x }
}

func TestJobsGoToNodesThatTheyAskFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(3)
	nodes := w.readNodes(node.Ready)
	w.label(nodes[1], ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	fast := w.submit(ann, jobOf(2, where(job.Where{Constraints: []string{"disk=nvme"}})))
	waits := w.submit(ann, jobOf(1, where(job.Where{Constraints: []string{"disk"}, Excludes: []string{nodes[1].ID}})))
	liked := w.submit(ann, jobOf(1, where(job.Where{Prefers: []string{"rack=r2"}})))
	w.label(nodes[2], ledger.NodeChange{Labels: map[string]string{"rack": "r2"}})
	w.doDueWork()
	require.Equal(t, []int{nodes[1].Slot}, w.slotsOf(fast.ID))
	require.Equal(t, []int{nodes[2].Slot}, w.slotsOf(liked.ID))
	require.Equal(t, job.Pending, w.readJob(waits.ID).State())
	require.Len(t, w.readNodes(node.Ready), 3)
	require.Empty(t, w.readNodes(node.Requested, node.Provisioning, node.Booting), "a new node would have no label")
	q := w.queue()
	require.Equal(t, []string{waits.ID, ledger.WaitsForNodes}, []string{q[0].ID, q[0].Code})
	require.Equal(t, "it may run on 0 of its pool's 4 nodes: it asks for disk, stays off 1 node", q[0].Detail)
	why, err := w.ledger.ExplainJob(t.Context(), ann, waits.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "asks for disk")
	w.label(nodes[0], ledger.NodeChange{Labels: map[string]string{"disk": "any"}})
	w.doDueWork()
	require.Equal(t, []int{nodes[0].Slot}, w.slotsOf(waits.ID), "it starts once a node has the label")
}

func TestTaintsKeepJobsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	nodes := w.readNodes(node.Ready)
	w.label(nodes[0], ledger.NodeChange{Taints: []string{"licensed"}})
	w.label(nodes[1], ledger.NodeChange{Taints: []string{"licensed"}})
	usual := w.submit(ann, jobOf(2, nil))
	bears := w.submit(ann, jobOf(2, where(job.Where{Tolerates: []string{"licensed"}})))
	w.doDueWork()
	require.NotContains(t, []int{nodes[0].Slot, nodes[1].Slot}, w.slotsOf(usual.ID)[0], "it has a node booted")
	require.Contains(t, []int{nodes[0].Slot, nodes[1].Slot}, w.slotsOf(bears.ID)[0])
}

// A gang that takes any nodes has those with labels and those without.
func TestGangsSpreadOverNodesWithOtherLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	w.label(w.readNodes(node.Ready)[0], ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	gang := w.submit(ann, jobOf(8, func(c *ledger.JobCommand) { c.Job.Priority = job.High }))
	w.submit(ann, jobOf(1, where(job.Where{Constraints: []string{"disk=nvme"}})))
	w.doDueWork()
	require.Len(t, w.slotsOf(gang.ID), 4)
}

// A job that has a place on a node that comes waits again when it may not run there any more.
func TestAPlaceThatDoesNotFitAnyMoreIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	slot := w.slotsOf(j.ID)[0]
	for _, n := range w.readNodes() {
		w.label(n, ledger.NodeChange{Taints: []string{"old"}})
	}
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	require.Equal(t, 2, w.readJob(j.ID).Attempt)
	require.NotEqual(t, slot, w.slotsOf(j.ID)[0])
}

func TestAJobStaysOffANodeThatLostIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	j := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	slot := w.slotsOf(j.ID)[0]
	for id, daemon := range w.daemons() {
		for _, o := range w.orders(daemon) {
			w.report(daemon, o, &job.End{Code: job.Lost})
			require.Equal(t, []string{id}, w.readJob(j.ID).Avoids)
		}
	}
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	w.pass(time.Minute)
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	require.NotEqual(t, slot, w.slotsOf(j.ID)[0])
}

// It may have that node again where no other has what it asks for, however many there are.
func TestAJobStaysOffNoNodeThatAloneHasWhatItAsksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	only := w.label(w.readNodes(node.Ready)[1], ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	j := w.submit(ann, jobOf(2, where(job.Where{Constraints: []string{"disk=nvme"}})))
	w.doDueWork()
	held, daemons := w.readJob(j.ID).AllocationID, w.daemons()
	for _, daemon := range daemons {
		for _, o := range w.orders(daemon) {
			w.report(daemon, o, &job.End{Code: job.Lost})
		}
	}
	require.Empty(t, w.readJob(j.ID).Avoids)
	w.pass(time.Minute)
	require.Equal(t, ledger.WaitsForGPUs, w.queue()[0].Code, "which are still cleaned")
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	w.proveClean(daemons[only.ID], ledger.Cleaned{AllocationID: held, Proof: "nothing is left"})
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	require.Equal(t, []int{only.Slot}, w.slotsOf(j.ID))
}

// Labels and taints of a pool are those of nodes that are not made yet: a job goes to the pool that has what it asks
// for, and boots a node there; what does not tolerate a pool's taint goes elsewhere.
func TestPoolsHaveLabelsForNodesThatAreNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	fast := w.addPool("fast", 3*money.USD, func(p *capacity.Pool) {
		p.Labels, p.Taints = map[string]string{"disk": "nvme"}, []string{"licensed"}
	})
	anywhere := func(c *ledger.JobCommand) { c.Needs.Pool = "" }
	asks := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) {
		anywhere(c)
		c.Job.Where = job.Where{Constraints: []string{"disk=nvme"}, Tolerates: []string{"licensed"}}
	}))
	require.Equal(t, fast.ID, asks.PoolID)
	require.Equal(t, w.pool.ID, w.submit(ann, jobOf(1, anywhere)).PoolID)
	w.pool = fast
	stays := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Needs.Pool = "fast" }))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(asks.ID).State(), "a node is made for it")
	require.Equal(t, job.Pending, w.readJob(stays.ID).State())
	queue := w.queue()
	require.Len(t, queue, 1)
	require.Equal(t, ledger.WaitsForNodes, queue[0].Code)
	require.Contains(t, queue[0].Detail, "does not tolerate licensed")

	_, err := w.ledger.UpdatePool(t.Context(), operator, fast.ID, 1, func(p *capacity.Pool) { p.Taints = nil })
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(stays.ID).State())
	_, err = w.ledger.UpdatePool(t.Context(), operator, fast.ID, 2, func(p *capacity.Pool) { p.Taints = []string{"a b"} })
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "taints", invalid.Field)
}
