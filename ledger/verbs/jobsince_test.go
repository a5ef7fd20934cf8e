package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) explainJob(who ledger.Actor, id string) ledger.Explanation {
	w.Helper()
	why, err := w.ledger.ExplainJob(w.Context(), who, id)
	require.NoError(w, err)
	return why
}

// For how long a job is held counts from its last hold, and for how long it waits from when its wait began.
func TestSinceWhenAJobIsHeldAndWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.mustAllocate(w.newPerson("by hand"), 8)
	j := w.submit(ann, jobOf(2, nil))
	w.pass(10 * time.Minute)
	w.mustHold(ann, j.ID)
	held := w.clock.Now()
	w.pass(time.Minute)
	require.Equal(t, held, w.explainJob(ann, j.ID).Since)
	w.mustRelease(ann, j.ID)
	released := w.clock.Now()
	w.pass(time.Minute)
	require.Equal(t, released, w.explainJob(ann, j.ID).Since)
	at := w.submit(ann, jobOf(2, func(c *ledger.JobCommand) { c.Held = true }))
	w.pass(time.Minute)
	require.Equal(t, at.SubmittedAt, w.explainJob(ann, at.ID).Since)
}

// Whoever excludes a node learns nothing of it: any id is taken, whether there is such a node or not.
func TestExcludedNodesConfirmNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	ann := w.newSubmitter("ann")
	excluding := func(id string) error {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, where(job.Where{Excludes: []string{id}})))
		return err
	}
	require.NoError(t, excluding(w.nodeOnSlot(0).ID))
	require.NoError(t, excluding(ids.UUID{}.New(ids.Node)))
	var invalid *ledger.InvalidError
	require.ErrorAs(t, excluding("nod_1"), &invalid)
	require.Equal(t, "excluded_nodes[0]", invalid.Field)
	boss := operator
	boss.OrganizationID = ann.OrganizationID
	nowhere := where(job.Where{Excludes: []string{ids.UUID{}.New(ids.Node)}})
	_, err := w.ledger.SubmitJobs(t.Context(), boss, jobOf(1, nowhere))
	require.ErrorAs(t, err, &invalid, "operators see all nodes, and mistype, too")
}

// A job that waits for room is told the command that takes an offer.
func TestAnOfferToAJobIsTakenByACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	by := w.newPerson("by hand")
	w.mustReserve(by, 8, w.windowAfter(40*time.Minute, 2*time.Hour))
	j := w.submit(ann, jobOf(2, nil))
	w.pass(time.Minute)
	require.Equal(t, "forewarm jobs edit "+j.ID+" --max-runtime 30m", w.explainJob(ann, j.ID).Take)
}

// A drained node has free GPUs, and takes nobody: whoever is refused is told so, and a job that waits.
func TestADrainedNodeIsToldToWhomItDoesNotServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, by := w.newSubmitter("ann"), w.newPerson("by hand")
	w.mustAllocate(by, 1)
	w.mustAllocate(by, 6)
	w.pass(boot)
	a := w.allocateFor(by, 1, time.Hour)
	_, err := w.ledger.Release(t.Context(), by, a.ID)
	require.NoError(t, err)
	on := w.readNodes(node.Ready)
	for _, n := range on {
		_, err := w.ledger.DrainNode(t.Context(), operator, n.ID, "")
		require.NoError(t, err)
	}
	w.doDueWork()
	j := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	why := w.explainJob(ann, j.ID)
	require.NotNil(t, why.Refused)
	require.Equal(t, []ledger.ClosedNodes{{State: "draining", Nodes: len(on)}}, why.Refused.Closed)
}
