package verbs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// changeSet does something to a set of jobs.
type changeSet func(context.Context, ledger.Actor, ledger.JobSet) (ledger.JobsChanged, error)

// toTheEnd does it to all of a set, and returns how many transactions that took.
func (w *world) toTheEnd(do changeSet, who ledger.Actor, s ledger.JobSet) (all ledger.JobsChanged, times int) {
	w.Helper()
	for more := true; more; times++ {
		got, err := do(w.Context(), who, s)
		require.NoError(w, err)
		require.LessOrEqual(w, got.Changed+got.Refused, ledger.MostJobsAtOnce)
		all.Changed, all.Unchanged = all.Changed+got.Changed, all.Unchanged+got.Unchanged
		all.Refused += got.Refused
		all.Refusals = append(all.Refusals, got.Refusals...)
		s.After, more = got.Next, got.Next != ""
	}
	return all, times
}

func upTo(n int) (indices []int) {
	for i := range n {
		indices = append(indices, i)
	}
	return indices
}

// A large array is changed a bounded number at a time, and a repeat finds nothing to do.
func TestAWholeArrayIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 0, func(c *ledger.JobCommand) { c.Job.Command.Input = []byte("secret") }, upTo(450)...)
	one := w.submit(ann, jobOf(1, nil))
	array := ledger.JobSet{ArrayID: all[0].Array.ID}
	for _, step := range []struct {
		do   changeSet
		then job.State
	}{{w.ledger.HoldJobs, job.Held}, {w.ledger.ReleaseJobs, job.Pending}, {w.ledger.CancelJobs, job.Cancelled}} {
		got, times := w.toTheEnd(step.do, ann, array)
		require.Equal(t, ledger.JobsChanged{Changed: 450}, got)
		require.Equal(t, 3, times)
		require.Equal(t, slices.Repeat([]job.State{step.then}, 450), w.states(all))
		got, times = w.toTheEnd(step.do, ann, array)
		require.Equal(t, ledger.JobsChanged{Unchanged: 450}, got)
		require.Equal(t, 1, times)
	}
	require.Len(t, w.readEvents("job.cancelled"), 450)
	require.Empty(t, w.readJob(all[449].ID).Command.Input, "with each its input is deleted")
	require.Equal(t, job.Pending, w.readJob(one.ID).State(), "it is of no array")
}

// A repeat goes on where an earlier request ended, whatever that had done.
func TestASetOfJobsIsGoneOnWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 0, nil, upTo(ledger.MostJobsAtOnce+5)...)
	array := ledger.JobSet{ArrayID: all[0].Array.ID}
	first, err := w.ledger.CancelJobs(t.Context(), ann, array)
	require.NoError(t, err)
	require.Equal(t, ledger.JobsChanged{Changed: ledger.MostJobsAtOnce, Next: all[ledger.MostJobsAtOnce-1].ID}, first)
	got, _ := w.toTheEnd(w.ledger.CancelJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{Changed: 5, Unchanged: ledger.MostJobsAtOnce}, got)
	array.After = all[len(all)-2].ID
	got, _ = w.toTheEnd(w.ledger.CancelJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{}, got)
}

// Of an array whose jobs are in many states, each verb changes those that it can. What runs has its grace, as after the
// verb on one job, and keeps its GPUs meanwhile.
func TestAnArrayThatIsPartlyOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 2, nil, 0, 1, 2, 3)
	w.pass(boot)
	w.finish(succeeded)
	w.pass(time.Minute)
	started := 0
	for _, daemon := range w.daemons() {
		for _, o := range w.orders(daemon) {
			w.report(daemon, o, nil)
			started++
		}
	}
	require.Equal(t, 2, started)
	require.Equal(t, []job.State{job.Completed, job.Completed, job.Running, job.Running}, w.states(all))
	array := ledger.JobSet{ArrayID: all[0].Array.ID}
	got, _ := w.toTheEnd(w.ledger.HoldJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{Unchanged: 4}, got)

	got, _ = w.toTheEnd(w.ledger.RequeueJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{Changed: 2, Unchanged: 2}, got)
	require.Equal(t, job.ThenRequeued, w.readJob(all[3].ID).Ending.Then)
	require.True(t, w.readJob(all[3].ID).HasGPUs())
	got, _ = w.toTheEnd(w.ledger.RequeueJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{Unchanged: 4}, got, "they are told already")

	_, err := w.ledger.CancelJob(t.Context(), ann, all[2].ID)
	require.NoError(t, err)
	got, _ = w.toTheEnd(w.ledger.RequeueJobs, ann, array)
	require.Equal(t, 1, got.Refused)
	require.Equal(t, all[2].ID, got.Refusals[0].ID)
	require.ErrorContains(t, got.Refusals[0].Err, "is ending: cannot requeue it")
	got, _ = w.toTheEnd(w.ledger.CancelJobs, ann, array)
	require.Equal(t, ledger.JobsChanged{Changed: 1, Unchanged: 3}, got)
}

// Refusals are counted, and a few of them told.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	var got ledger.JobsChanged
	for i := range ledger.MostRefusedJobs + 5 {
		got.Refuse(job.Job{ID: fmt.Sprint(i)}, ledger.ErrDenied)
	}
	require.Equal(t, ledger.MostRefusedJobs+5, got.Refused)
	require.Len(t, got.Refusals, ledger.MostRefusedJobs)
}

// Nobody reaches the jobs of another organization, nor, with mine, those of somebody else in their own.
func TestSetsAreOfTheirOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	eve := ann
	eve.KeyID = "key_eve"
	ofAnn, ofBob := w.submitArray(ann, 0, nil, 0, 1), w.submit(bob, jobOf(1, nil))
	for _, id := range []string{ofAnn[0].Array.ID, "arr_404"} {
		_, err := w.ledger.CancelJobs(t.Context(), bob, ledger.JobSet{ArrayID: id})
		require.ErrorIs(t, err, ledger.ErrNotFound)
	}
	got, _ := w.toTheEnd(w.ledger.CancelJobs, eve, ledger.JobSet{Mine: true})
	require.Equal(t, ledger.JobsChanged{}, got)
	require.Equal(t, []job.State{job.Pending, job.Pending}, w.states(ofAnn))
	got, _ = w.toTheEnd(w.ledger.HoldJobs, eve, ledger.JobSet{ArrayID: ofAnn[0].Array.ID})
	require.Equal(t, ledger.JobsChanged{Changed: 2}, got, "what one may do to a job one may do to an array")

	held := ledger.JobSet{Mine: true, State: []string{string(job.Held)}}
	got, _ = w.toTheEnd(w.ledger.CancelJobs, bob, held)
	require.Equal(t, ledger.JobsChanged{}, got)
	got, _ = w.toTheEnd(w.ledger.CancelJobs, bob, ledger.JobSet{Mine: true, PoolID: "pol_404"})
	require.Equal(t, ledger.JobsChanged{}, got)
	got, _ = w.toTheEnd(w.ledger.CancelJobs, bob, ledger.JobSet{Mine: true, PoolID: w.pool.ID})
	require.Equal(t, ledger.JobsChanged{Changed: 1}, got)
	require.Equal(t, job.Cancelled, w.readJob(ofBob.ID).State())
	more := w.submit(ann, jobOf(1, nil))
	got, _ = w.toTheEnd(w.ledger.CancelJobs, ann, held)
	require.Equal(t, ledger.JobsChanged{Changed: 2}, got)
	require.Equal(t, job.Pending, w.readJob(more.ID).State())
}

// What a person has submitted with one key they cancel with another.
func TestAPersonsJobsAreThoseOfAllOfTheirKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	person, err := w.ledger.CreateUser(t.Context(), operator, ledger.User{OrganizationID: ann.OrganizationID,
		Email: "ann@example.org", Role: ledger.Member})
	require.NoError(t, err)
	ann.UserID = person.ID
	j := w.submit(ann, jobOf(1, nil))
	ann.KeyID = "key_other"
	got, _ := w.toTheEnd(w.ledger.CancelJobs, ann, ledger.JobSet{Mine: true})
	require.Equal(t, ledger.JobsChanged{Changed: 1}, got)
	require.Equal(t, job.Cancelled, w.readJob(j.ID).State())
}

// A request that says nothing, or two things, changes nothing.
func TestASetIsOfOneKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(1, nil))
	for _, s := range []ledger.JobSet{{}, {PoolID: w.pool.ID}, {ArrayID: "arr_1", Mine: true}} {
		_, err := w.ledger.CancelJobs(t.Context(), ann, s)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid)
	}
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
}

// The GPUs of what is cancelled are others' at once.
func TestASetGivesItsGPUsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	all := w.submitArray(ann, 0, nil, upTo(20)...)
	w.doDueWork()
	before := len(w.readEvents("job.scheduled"))
	_, err := w.ledger.CancelJobs(t.Context(), ann, ledger.JobSet{ArrayID: all[0].Array.ID})
	require.NoError(t, err)
	next := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(next.ID).State(), "what the array held is free")
	require.Len(t, w.readEvents("job.scheduled"), before+1)
}
