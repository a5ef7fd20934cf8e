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

// anywhere is a job for any pool of a model.
func anywhere(gpus int, change func(*ledger.JobCommand)) ledger.JobCommand {
	c := jobOf(gpus, change)
	c.Needs.Pool, c.Needs.Model = "", "h100"
	return c
}

// poolNodes are the nodes of a pool that are ready.
func (w *world) poolNodes(p ledger.Pool) (all []node.Node) {
	w.Helper()
	for _, n := range w.readNodes(node.Ready) {
		if n.PoolID == p.ID {
			all = append(all, n)
		}
	}
	return all
}

// warmIn boots a node of a pool.
func (w *world) warmIn(p ledger.Pool) node.Node {
	w.Helper()
	by := w.newPerson("warmer of " + p.Name)
	a, err := w.ledger.Allocate(w.Context(), by, ledger.AllocateRequest{Pool: p.Name, GPUs: 2, Lease: time.Hour})
	require.NoError(w, err)
	w.pass(boot)
	_, err = w.ledger.Release(w.Context(), by, a.ID)
	require.NoError(w, err)
	w.doDueWork()
	return w.poolNodes(p)[0]
}

func (w *world) edit(who ledger.Actor, id string, e ledger.JobEdit) (job.Job, error) {
	w.Helper()
	return w.ledger.EditJob(w.Context(), who, id, w.readJob(id).Version, e)
}

// A job that may wait in several pools goes where it can run, when that changes, and only then.
func TestAJobMovesToAPoolThatHasNodesForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	dear := w.addPool("dear", 9*money.USD, nil)
	asks := anywhere(2, where(job.Where{Constraints: []string{"disk=nvme"}}))
	waits := w.submit(ann, asks)
	asks.Needs.Pool, asks.Needs.Model = "lab", ""
	stays := w.submit(ann, asks)
	require.Equal(t, w.pool.ID, waits.PoolID, "no pool has such nodes, and this one is cheaper")
	w.pass(5 * time.Minute)
	require.Equal(t, w.pool.ID, w.readJob(waits.ID).PoolID)
	submitted := w.readJob(waits.ID).SubmittedAt

	nvme := w.warmIn(dear)
	w.label(nvme, ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	w.pass(time.Minute)
	is := w.readJob(waits.ID)
	require.Equal(t, dear.ID, is.PoolID)
	require.Equal(t, job.Scheduled, is.State())
	require.Equal(t, submitted, is.SubmittedAt)
	moved := w.readEvents("job.moved")
	require.Len(t, moved, 1)
	require.Equal(t, "it waits in pool dear, which has nodes for it: pool lab has not", moved[0].Message)
	require.Equal(t, w.pool.ID, w.readJob(stays.ID).PoolID, "it was said where")
}

// A pool is left for one whose nodes have daemons.
func TestAJobMovesToAPoolThatHasDaemons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	dear := w.addPool("dear", 9*money.USD, nil)
	w.warmNodes(4)
	w.joinedDaemons()
	waits := w.submit(ann, anywhere(2, func(c *ledger.JobCommand) {
		c.Job.NotBefore = w.clock.Now().Add(5 * time.Minute)
	}))
	require.Equal(t, w.pool.ID, waits.PoolID)
	w.silent = map[string]bool{}
	for _, n := range w.readNodes(node.Ready) {
		w.silent[n.ID] = true
	}
	w.pass(6 * time.Minute)
	require.Equal(t, dear.ID, w.readJob(waits.ID).PoolID)
}

// Whoever waits may be sent to another pool, with its place by when it was submitted.
func TestAJobIsEditedToWaitInAnotherPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	other := w.addPool("other", 9*money.USD, nil)
	small := w.addPool("small", money.USD, func(p *capacity.Pool) { p.PerNode, p.Type = 1, "gpu-1" })
	waits := w.submit(ann, jobOf(2, where(job.Where{Constraints: []string{"disk"}})))
	held := w.submit(ann, jobOf(2, func(c *ledger.JobCommand) { c.Held = true }))
	for _, j := range []job.Job{waits, held} {
		got, err := w.edit(ann, j.ID, ledger.JobEdit{Pool: &other.Name})
		require.NoError(t, err)
		require.Equal(t, other.ID, got.PoolID)
		require.Equal(t, j.SubmittedAt, got.SubmittedAt)
	}
	edited := w.readEvents("job.edited")
	require.Equal(t, "pool other", edited[0].Message)
	require.Empty(t, w.queue())
	_, err := w.ledger.ReleaseJob(t.Context(), ann, held.ID)
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(held.ID).State())

	var invalid *ledger.InvalidError
	_, err = w.edit(ann, waits.ID, ledger.JobEdit{Pool: &small.Name})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "must have 2 GPUs on a node, and those of pool small have 1", invalid.Rule)
	_, err = w.edit(ann, waits.ID, ledger.JobEdit{Pool: new("nowhere")})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "pool", invalid.Field)
	_, err = w.edit(ann, held.ID, ledger.JobEdit{Pool: &w.pool.Name})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "must stay of a job that has GPUs: it is where it is", invalid.Rule)
	r := w.mustReserve(ann, 2, w.windowAfter(time.Hour, 3*time.Hour))
	reserved := w.submit(ann, jobOf(0, func(c *ledger.JobCommand) {
		c.Needs, c.Job.Reservation, c.Job.MaxRuntime = ledger.AllocateRequest{}, r.ID, time.Hour
	}))
	_, err = w.edit(ann, reserved.ID, ledger.JobEdit{Pool: &other.Name})
	require.ErrorContains(t, err, "runs in reservation")
}

// Of the pools in which a job could begin at once that one is taken whose nodes have what it prefers.
func TestPreferredLabelsChooseAmongPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	dear := w.addPool("dear", 9*money.USD, nil)
	w.warmNodes(1)
	nvme := w.warmIn(dear)
	w.label(nvme, ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	w.joinedDaemons()
	plain := w.submit(ann, anywhere(1, nil))
	require.Equal(t, w.pool.ID, plain.PoolID, "the cheaper one")
	w.doDueWork()
	likes := w.submit(ann, anywhere(1, where(job.Where{Prefers: []string{"disk=nvme"}})))
	require.Equal(t, dear.ID, likes.PoolID)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(likes.ID).State())
	two := w.submit(ann, anywhere(2, where(job.Where{Prefers: []string{"disk=nvme"}})))
	require.Equal(t, dear.ID, two.PoolID, "neither could begin at once")
	w.doDueWork()
	full := w.submit(ann, anywhere(1, where(job.Where{Prefers: []string{"disk=nvme"}})))
	require.Equal(t, dear.ID, full.PoolID)
}

// A set of jobs is sent to another pool as each of them would be.
func TestASetOfJobsIsSentToAnotherPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	other := w.addPool("other", 9*money.USD, nil)
	array := w.submitArray(ann, 0, func(c *ledger.JobCommand) { c.Held = true }, 1, 2, 3)
	set := ledger.JobSet{ArrayID: array[0].Array.ID}
	for _, want := range []ledger.JobsChanged{{Changed: 3}, {Unchanged: 3}} {
		got, err := w.ledger.EditJobs(t.Context(), ann, set, ledger.JobEdit{Pool: &other.Name})
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, j := range array {
			require.Equal(t, other.ID, w.readJob(j.ID).PoolID)
		}
	}
}
