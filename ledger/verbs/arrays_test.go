package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) submitArray(who ledger.Actor, limit int, change func(*ledger.JobCommand), indices ...int) []job.Job {
	w.Helper()
	got, err := w.ledger.SubmitJobs(w.Context(), who, jobOf(1, func(c *ledger.JobCommand) {
		c.Indices, c.ArrayLimit = indices, limit
		if change != nil {
			change(c)
		}
	}))
	require.NoError(w, err)
	return got
}

// states are those of jobs, in their order.
func (w *world) states(all []job.Job) (out []job.State) {
	w.Helper()
	for _, j := range all {
		out = append(out, w.readJob(j.ID).State())
	}
	return out
}

// finish has the daemons start what they are told to, and end it so.
func (w *world) finish(end *job.End) (ended int) {
	w.Helper()
	for _, daemon := range w.daemons() {
		for _, o := range w.orders(daemon) {
			w.report(daemon, o, nil)
			w.report(daemon, o, end)
			w.proveClean(daemon, ledger.Cleaned{AllocationID: o.Allocation.ID, Proof: "nothing is left"})
			ended++
		}
	}
	return ended
}

// queue is that of the world's pool. Lists of jobs say the same of why each waits.
func (w *world) queue() (all []ledger.QueuedJob) {
	w.Helper()
	require.NoError(w, w.store.Read(w.Context(), func(r ledger.Reader) (err error) {
		if all, err = w.ledger.QueueOf(r, w.pool.ID); err != nil {
			return err
		}
		jobs := make([]job.Job, 0, len(all))
		for _, q := range all {
			jobs = append(jobs, q.Job)
		}
		why, err := w.ledger.WhyWaiting(r, jobs)
		for _, q := range all {
			require.Equal(w, [2]string{q.Code, q.Detail}, [2]string{why[q.ID].Code, why[q.ID].Detail})
		}
		return err
	}))
	return all
}

// Of a bounded array no more have GPUs at once than it says, whatever is free, and all run in the end.
func TestABoundedArray(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 2, nil, 1, 3, 5, 7, 9)
	require.Equal(t, job.Array{ID: all[0].Array.ID, Jobs: 5, First: 1, Last: 9, Limit: 2}, all[0].Array)
	var waits []string
	for _, q := range w.queue() {
		waits = append(waits, q.Code)
	}
	require.Equal(t, []string{ledger.WaitsForGPUs, ledger.WaitsForGPUs, ledger.WaitsForArray, ledger.WaitsForArray,
		ledger.WaitsForArray}, waits)
	w.doDueWork()
	w.pass(boot)
	require.Equal(t, []job.State{job.Scheduled, job.Scheduled, job.Pending, job.Pending, job.Pending}, w.states(all))
	why, err := w.ledger.ExplainJob(t.Context(), ann, all[2].ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "Its array runs 2 at once")
	for _, n := range []int{2, 2, 1, 0} {
		require.Equal(t, n, w.finish(succeeded))
		w.pass(time.Minute)
	}
	require.Equal(t, slices.Repeat([]job.State{job.Completed}, 5), w.states(all))
}

// A run of the scheduler that knows nothing of another's starts does not go beyond the bound either.
func TestABoundedArrayAndTwoSchedulers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.submitArray(w.newSubmitter("ann"), 1, nil, 0, 1, 2)
	over := make(chan error)
	for range 4 {
		go func() { over <- w.ledger.ScheduleJobs(w.Context(), w.pool.ID) }()
	}
	for range 4 {
		require.NoError(t, <-over)
	}
	require.Equal(t, 1, len(slices.DeleteFunc(w.states(all), func(s job.State) bool { return s != job.Scheduled })))
}

// A job that waits for an array waits for all of its jobs.
func TestAJobAfterAnArray(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 0, nil, 0, 1)
	array := all[0].Array.ID
	after := func(condition job.Condition) job.Job {
		return w.submit(ann, jobOf(1, func(c *ledger.JobCommand) {
			c.Job.Dependencies = []job.Depends{{JobID: array, Condition: condition}}
		}))
	}
	ok, notOK := after(job.AfterOK), after(job.AfterNotOK)
	w.pass(boot)
	require.Equal(t, job.Pending, w.readJob(ok.ID).State())
	why, err := w.ledger.ExplainJob(t.Context(), ann, ok.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "afterok "+array)
	require.Equal(t, 2, w.finish(succeeded))
	w.pass(time.Minute)
	require.Equal(t, job.Scheduled, w.readJob(ok.ID).State())
	require.Equal(t, job.Failed, w.readJob(notOK.ID).State())
	require.Equal(t, job.Dependency, w.readJob(notOK.ID).Reason)

	_, err = w.ledger.SubmitJobs(t.Context(), w.newSubmitter("bob"), jobOf(1, func(c *ledger.JobCommand) {
		c.Job.Dependencies = []job.Depends{{JobID: "arr_404", Condition: job.AfterOK}}
	}))
	require.ErrorContains(t, err, "a job or an array of yours")
}

// With aftercorr each job waits for the one of its own index.
func TestAnArrayAfterTheSameIndices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	first := w.submitArray(ann, 1, nil, 4, 5)
	corresponding := func(c *ledger.JobCommand) {
		c.Job.Dependencies = []job.Depends{{JobID: first[0].Array.ID, Condition: job.AfterCorr}}
	}
	second := w.submitArray(ann, 0, corresponding, 4, 5)
	for i := range second {
		require.Equal(t, []job.Depends{{JobID: first[i].ID, Condition: job.AfterOK}}, second[i].Dependencies)
	}
	w.pass(boot)
	require.Equal(t, 1, w.finish(succeeded))
	w.pass(time.Minute)
	require.Equal(t, []job.State{job.Scheduled, job.Pending}, w.states(second))
	for says, indices := range map[string][]int{"has none of index 6": {4, 6}, "between two arrays": nil} {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, func(c *ledger.JobCommand) {
			corresponding(c)
			c.Indices = indices
		}))
		require.ErrorContains(t, err, says)
	}
}

// What a job reads may have secrets, and is deleted with its end.
func TestTheInputOfAJobEndsWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	withInput := func(c *ledger.JobCommand) { c.Job.Command.Input = []byte("secret") }
	runs, cancelled := w.submit(ann, jobOf(1, withInput)), w.submit(ann, jobOf(1, withInput))
	_, err := w.ledger.CancelJob(t.Context(), ann, cancelled.ID)
	require.NoError(t, err)
	require.Empty(t, w.readJob(cancelled.ID).Command.Input)
	w.pass(boot)
	require.Equal(t, "secret", string(w.readJob(runs.ID).Command.Input))
	require.Equal(t, 1, w.finish(succeeded))
	require.Empty(t, w.readJob(runs.ID).Command.Input)
}
