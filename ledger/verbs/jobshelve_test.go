package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// What a job runs is ended, with its grace, and then the job is held until it is released.
func TestAJobIsRequeuedAndHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(2, nil))
	var state *ledger.StateError
	_, err := w.ledger.HoldJob(t.Context(), ann, r.ID)
	require.ErrorAs(t, err, &state)
	require.Equal(t, "forewarm jobs requeue --hold "+r.ID, state.Command)
	got, err := w.ledger.ShelveJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Equal(t, job.Running, got.State())
	require.True(t, got.Ending.Hold)
	why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "Then it is held until somebody releases it.")
	require.Len(t, w.stops(r), 1)
	w.endAll(r, stopped)
	require.Equal(t, job.Held, w.readJob(r.ID).State())
	require.Zero(t, w.readJob(r.ID).StartedAt)
	w.pass(time.Hour)
	require.Equal(t, job.Held, w.readJob(r.ID).State())
	_, err = w.ledger.ReleaseJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	w.pass(boot)
	w.begin(&r)
	require.Equal(t, 2, r.Attempt)
}

// Whether a job that is ending is held then can still be said; one that is being cancelled does not come back.
func TestAJobThatIsEndingIsHeldThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(2, nil))
	other := w.run(ann, jobOf(2, nil))
	steer := func(verb func() (job.Job, error)) job.Ending {
		got, err := verb()
		require.NoError(t, err)
		require.Equal(t, job.Running, got.State())
		return got.Ending
	}
	hold := func() (job.Job, error) { return w.ledger.HoldJob(t.Context(), ann, r.ID) }
	release := func() (job.Job, error) { return w.ledger.ReleaseJob(t.Context(), ann, r.ID) }
	shelve := func() (job.Job, error) { return w.ledger.ShelveJob(t.Context(), ann, r.ID) }
	cancel := func() (job.Job, error) { return w.ledger.CancelJob(t.Context(), ann, r.ID) }
	require.False(t, steer(func() (job.Job, error) { return w.ledger.RequeueJob(t.Context(), ann, r.ID) }).Hold)
	require.True(t, steer(hold).Hold)
	require.False(t, steer(release).Hold)
	require.True(t, steer(shelve).Hold)
	require.True(t, steer(hold).Hold, "again")
	_, err := w.edit(ann, r.ID, ledger.JobEdit{Name: new("x")})
	require.ErrorContains(t, err, "is ending: cannot edit it")
	w.endAll(r, stopped)
	require.Equal(t, job.Held, w.readJob(r.ID).State())

	r = other
	require.Equal(t, job.ThenCancelled, steer(cancel).Then)
	for _, verb := range []func() (job.Job, error){hold, release, shelve} {
		_, err := verb()
		var state *ledger.StateError
		require.ErrorAs(t, err, &state)
	}
}

// A job whose nodes have not begun it is held at once.
func TestAJobThatHasNotBegunIsHeldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	got, err := w.ledger.ShelveJobs(t.Context(), ann, ledger.JobSet{Mine: true})
	require.NoError(t, err)
	require.Equal(t, 1, got.Changed)
	require.Equal(t, job.Held, w.readJob(j.ID).State())
	require.Equal(t, 0, w.takenGPUs())
}

// Of a job that runs that can be changed which still has an effect.
func TestAJobThatRunsIsEdited(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.run(ann, jobOf(8, func(c *ledger.JobCommand) {
		c.Job.MaxRuntime, c.Job.Checkpoint = 20*time.Hour, job.Checkpoint{Signal: "USR1", Before: time.Minute}
	}))
	w.submit(bob, jobOf(8, func(c *ledger.JobCommand) { c.Job.Priority = job.High }))
	w.pass(time.Hour)
	require.Equal(t, job.Running, w.readJob(r.ID).State())
	for field, e := range map[string]ledger.JobEdit{"max_runtime_seconds": {MaxRuntime: new(time.Hour)},
		"not_before": {NotBefore: new(w.clock.Now())}} {
		var invalid *ledger.InvalidError
		_, err := w.edit(ann, r.ID, e)
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
		require.Contains(t, invalid.Fix, "forewarm jobs requeue --hold "+r.ID)
		got, err := w.ledger.EditJobs(t.Context(), ann, ledger.JobSet{Mine: true}, e)
		require.NoError(t, err)
		require.Zero(t, got.Changed)
	}
	got, err := w.edit(ann, r.ID, ledger.JobEdit{Name: new("called"), Priority: new(job.Low), Preemptible: new(true)})
	require.NoError(t, err)
	require.Equal(t, "called", got.Name)
	require.Equal(t, job.Running, got.State())
	w.pass(2 * time.Minute)
	require.Equal(t, job.Preempted, w.readJob(r.ID).State(), "it may leave for others now")
}
