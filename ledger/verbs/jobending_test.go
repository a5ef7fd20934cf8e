package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// running is a job that runs, with what its daemons were told.
type running struct {
	job.Job
	daemons []ledger.Actor
	orders  []ledger.JobOrder
}

// joinedDaemons are those of all nodes that are ready. Each of them joins once.
func (w *world) joinedDaemons() (all []ledger.Actor) {
	w.Helper()
	if w.joined == nil {
		w.joined = map[string]ledger.Actor{}
	}
	for _, n := range w.readNodes(node.Ready) {
		if _, ok := w.joined[n.ID]; !ok {
			w.joined[n.ID] = w.lookAt(n.ID).daemon
		}
		all = append(all, w.joined[n.ID])
	}
	return all
}

// run submits a job, and has it begin on all of its nodes.
func (w *world) run(who ledger.Actor, c ledger.JobCommand) running {
	w.Helper()
	r := running{Job: w.submit(who, c)}
	w.pass(boot)
	w.begin(&r)
	return r
}

// begin has daemons start what they are told of a job.
func (w *world) begin(r *running) {
	w.Helper()
	r.daemons, r.orders = nil, nil
	for _, daemon := range w.joinedDaemons() {
		for _, o := range w.orders(daemon) {
			if o.Job.ID == r.ID {
				w.report(daemon, o, nil)
				r.daemons, r.orders = append(r.daemons, daemon), append(r.orders, o)
			}
		}
	}
	r.Job = w.readJob(r.ID)
	require.Equal(w, job.Running, r.State())
}

// stops is what the daemons of a job are told to end of it.
func (w *world) stops(r running) (all []ledger.JobStop) {
	w.Helper()
	for i, daemon := range r.daemons {
		said := ledger.NodeReport{Isolation: capacity.IsolationUser, Jobs: []ledger.JobReport{{JobID: r.ID,
			Attempt: r.Attempt, Rank: r.orders[i].Rank}}}
		told := w.settle(daemon, said)
		said.Jobs = append(said.Jobs, ledger.JobReport{JobID: "job_of_nobody", Attempt: 1})
		require.Equal(w, told.Stop, w.settle(daemon, said).Stop)
		all = append(all, told.Stop...)
	}
	return all
}

var stopped = &job.End{Code: job.Stopped, ExitCode: 143, Ran: true}

// endAll has all daemons of a job say how it ended, and that nothing of it is left.
func (w *world) endAll(r running, end *job.End) {
	w.Helper()
	for i, daemon := range r.daemons {
		w.report(daemon, r.orders[i], end)
	}
	for i, daemon := range r.daemons {
		w.proveClean(daemon, ledger.Cleaned{AllocationID: r.orders[i].Allocation.ID, Proof: "nothing is left"})
	}
}

func aGang(c *ledger.JobCommand) {
	c.Needs = ledger.AllocateRequest{Pool: "lab", Layout: capacity.Layout{Nodes: 2, PerNode: 2}}
}

// A job that runs is cancelled once all of it has ended, and has its GPUs until then.
func TestACancelledJobHasItsGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(0, aGang))
	got, err := w.ledger.RequeueJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Equal(t, job.ThenRequeued, got.Ending.Then)
	got, err = w.ledger.CancelJob(t.Context(), ann, r.ID)
	require.NoError(t, err, "who has it requeued may change their mind")
	require.Equal(t, job.Running, got.State())
	require.Equal(t, job.ThenCancelled, got.Ending.Then)
	require.Equal(t, w.readJob(r.ID), got)
	for _, change := range []func() (job.Job, error){
		func() (job.Job, error) { return w.ledger.CancelJob(t.Context(), ann, r.ID) },
		func() (job.Job, error) { return w.ledger.RequeueJob(t.Context(), ann, r.ID) },
	} {
		var state *ledger.StateError
		_, err := change()
		require.ErrorAs(t, err, &state)
	}
	require.Equal(t, allocation.Active, w.readAllocation(got.AllocationID).State())
	require.Len(t, w.stops(r), 2)
	require.Equal(t, 30*time.Second, w.stops(r)[0].Grace)
	require.Zero(t, w.stops(r)[0].Lead)
	w.report(r.daemons[0], r.orders[0], stopped)
	require.Equal(t, job.Running, w.readJob(r.ID).State(), "the other half has its grace, too")
	w.report(r.daemons[1], r.orders[1], stopped)
	over := w.readJob(r.ID)
	require.Equal(t, job.Cancelled, over.State())
	require.False(t, over.Ending.Is())
	require.Equal(t, allocation.Released, w.readAllocation(got.AllocationID).State())
	require.Empty(t, w.stops(r))
	told := w.readEvents("job.ending")
	require.Len(t, told, 2)
	require.Contains(t, told[1].Message, "is then cancelled")
}

// What had ended by itself before it heard of it has completed.
func TestACancelledJobThatHasCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(1, nil))
	_, err := w.ledger.CancelJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	w.endAll(r, succeeded)
	require.Equal(t, job.Completed, w.readJob(r.ID).State())
}

// A node that says nothing keeps a job in no state between.
func TestAJobOfASilentNodeEndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(1, nil))
	got, err := w.ledger.RequeueJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	w.pass(got.Ending.By.Sub(w.clock.Now()) - time.Second)
	require.True(t, w.readJob(r.ID).Ending.Is())
	w.pass(time.Second)
	again := w.readJob(r.ID)
	require.False(t, again.Ending.Is())
	require.Equal(t, allocation.Released, w.readAllocation(got.AllocationID).State())
	require.NotEmpty(t, w.report(r.daemons[0], r.orders[0], succeeded), "what it says later changes nothing")
	require.Equal(t, again, w.readJob(r.ID))
}

// A node that is lost meanwhile ends what was to end.
func TestAJobThatEndsOutlivesNoNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.look = 10 * time.Second
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(1, nil))
	_, err := w.ledger.CancelJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	delete(w.up, r.daemons[0].NodeID)
	w.pass(20 * time.Second)
	require.Equal(t, job.Cancelled, w.readJob(r.ID).State())
}
