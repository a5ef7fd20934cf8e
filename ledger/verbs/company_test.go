package verbs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// called is a job of a name, on nodes as it says.
func called(name string, gpus int, x job.Where) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) { c.Job.Name, c.Job.Where = name, x })
}

// Jobs of a name that stay apart have a node each; one more than there are nodes waits, is told why, and holds up
// nobody. Who says nothing is kept from those that do.
func TestJobsStayApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	apart := job.Where{Apart: []string{"web"}}
	slots := map[int]bool{}
	var all []job.Job
	for range 4 {
		j := w.submit(ann, called("web", 1, apart))
		w.doDueWork()
		slots[w.slotsOf(j.ID)[0]] = true
		all = append(all, j)
	}
	require.Len(t, slots, 4)
	fifth := w.submit(ann, called("web", 1, apart))
	silent := w.submit(ann, called("web", 1, job.Where{}))
	other := w.submit(ann, called("train", 1, job.Where{}))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(fifth.ID).State())
	require.Equal(t, job.Pending, w.readJob(silent.ID).State(), "the others stay apart from it")
	require.NotEqual(t, job.Pending, w.readJob(other.ID).State(), "it is held up by nobody")
	why, err := w.ledger.ExplainJob(t.Context(), ann, fifth.ID)
	require.NoError(t, err)
	at := slices.IndexFunc(why.Blockers, func(b ledger.Blocker) bool { return b.Code == "apart" })
	require.GreaterOrEqual(t, at, 0)
	require.Len(t, why.Blockers[at].Evidence, 4)
	require.Contains(t, why.Blockers[at].Evidence[0], all[0].ID+" (web) is on ")

	bob := w.newSubmitter("bob")
	theirs := w.submit(bob, called("web", 1, apart))
	w.doDueWork()
	require.NotEqual(t, job.Pending, w.readJob(theirs.ID).State(), "of another organization the name says nothing")
}

// A job goes to the node where the other one runs, then to one near it, and must name what is its organization's.
func TestJobsGoNearOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	nodes := w.readNodes(node.Ready)
	for i, rack := range []string{"r1", "r2", "r3", "r2"} {
		w.label(nodes[i], ledger.NodeChange{Labels: map[string]string{"rack": rack}})
	}
	first := w.submit(ann, called("data", 1, job.Where{Constraints: []string{"rack=r2"}}))
	w.doDueWork()
	at := w.slotsOf(first.ID)[0]
	beside := w.submit(ann, called("", 1, job.Where{Near: []string{first.ID}}))
	w.doDueWork()
	require.Equal(t, []int{at}, w.slotsOf(beside.ID))
	near := w.submit(ann, called("", 1, job.Where{Near: []string{first.ID}}))
	w.doDueWork()
	require.NotEqual(t, []int{at}, w.slotsOf(near.ID), "it is full")
	require.Contains(t, []int{nodes[1].Slot, nodes[3].Slot}, w.slotsOf(near.ID)[0], "the other node of the rack")
	away := w.submit(ann, called("", 1, job.Where{Near: []string{first.ID}, Apart: []string{near.ID, first.ID}}))
	w.doDueWork()
	require.Contains(t, []int{nodes[0].Slot, nodes[2].Slot}, w.slotsOf(away.ID)[0], "apart goes before near")
	for field, x := range map[string]job.Where{"near[0]": {Near: []string{"job_none"}},
		"apart_from[0]": {Apart: []string{"arr_none"}}} {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, called("", 1, x))
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}

// Jobs stay apart from those of an array, of which an allocation does not tell.
func TestJobsStayApartFromArrays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	three := jobOf(1, func(c *ledger.JobCommand) { c.Indices = []int{1, 2, 3} })
	array, err := w.ledger.SubmitJobs(t.Context(), ann, three)
	require.NoError(t, err)
	w.doDueWork()
	j := w.submit(ann, called("", 1, job.Where{Apart: []string{array[0].Array.ID}}))
	w.doDueWork()
	for _, one := range array {
		require.NotEqual(t, w.slotsOf(one.ID), w.slotsOf(j.ID))
	}
}

// Conditions on labels beyond equality decide where jobs may run, also on nodes without the label.
func TestJobsAskForSetsOfLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(3)
	nodes := w.readNodes(node.Ready)
	w.label(nodes[0], ledger.NodeChange{Labels: map[string]string{"disk": "hdd"}})
	w.label(nodes[1], ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	for term, want := range map[string]node.Node{"disk in (nvme, ssd)": nodes[1], "disk=hdd": nodes[0]} {
		j := w.submit(ann, jobOf(1, where(job.Where{Constraints: []string{term}})))
		w.doDueWork()
		require.Equal(t, []int{want.Slot}, w.slotsOf(j.ID), term)
	}
	no := w.submit(ann, jobOf(1, where(job.Where{Constraints: []string{"disk", "disk notin (hdd,nvme)"}})))
	w.doDueWork()
	require.Equal(t, ledger.WaitsForNodes, w.queue()[0].Code)
	require.Equal(t, job.Pending, w.readJob(no.ID).State())
	_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, where(job.Where{Constraints: []string{"disk in ()"}})))
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "constraints[0]", invalid.Field)
}
