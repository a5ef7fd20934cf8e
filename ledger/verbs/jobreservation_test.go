package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// jobIn is a job that runs in a reservation.
func jobIn(r reservation.Reservation) ledger.JobCommand {
	return jobOf(0, func(c *ledger.JobCommand) {
		c.Job.Reservation, c.Job.MaxRuntime = r.ID, 0
	})
}

func (w *world) reserveHour(who ledger.Actor, from time.Duration, gpus int) reservation.Reservation {
	w.Helper()
	start := w.clock.Now().Add(from)
	r, err := w.ledger.Reserve(w.Context(), who, ledger.ReserveRequest{Pool: "lab", GPUs: gpus,
		Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}})
	require.NoError(w, err)
	return r
}

// A job that was given a reservation starts when that begins, on GPUs that are warm, before all that wait.
func TestAJobRunsInItsReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.reserveHour(ann, 2*time.Hour, 4)
	j := w.submit(ann, jobIn(r))
	require.Equal(t, r.Shape, j.Shape)
	require.Equal(t, r.Window.Start, j.NotBefore)
	require.Equal(t, time.Hour-30*time.Second-2*time.Minute, j.MaxRuntime, "what its end and its start leave")
	for range 8 { // the others' queue is long
		w.submit(bob, jobOf(2, func(c *ledger.JobCommand) { c.Job.MaxRuntime, c.Job.Priority = 20*time.Hour, job.High }))
	}
	w.pass(2*time.Hour - time.Second)
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	w.pass(2 * time.Second)
	running := w.readJob(j.ID)
	require.Equal(t, job.Scheduled, running.State())
	a := w.readAllocation(running.AllocationID)
	require.Equal(t, []string{r.ID}, a.Reservations)
	require.False(t, a.Window.End.After(r.Window.End.Add(time.Second)))
	require.Equal(t, a.RequestedAt, a.ActiveAt, "it waited for no boot")
}

// Whoever cancels a reservation ends what was to run in it before that begins.
func TestAJobWithoutItsReservationFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHour(ann, 2*time.Hour, 2)
	j := w.submit(ann, jobIn(r))
	w.pass(time.Minute)
	_, err := w.ledger.CancelReservation(t.Context(), ann, r.ID)
	require.NoError(t, err)
	w.pass(time.Second)
	require.Equal(t, job.Failed, w.readJob(j.ID).State())
	require.Equal(t, job.Unreserved, w.readJob(j.ID).Reason)
}

// What could not run in a reservation is refused when it is submitted.
func TestJobsThatDoNotFitAReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.reserveHour(ann, time.Hour, 2)
	for field, change := range map[string]func(*ledger.JobCommand){
		"pool":                func(c *ledger.JobCommand) { c.Needs.Pool = "other" },
		"gpus":                func(c *ledger.JobCommand) { c.Needs.GPUs = 1 },
		"max_runtime_seconds": func(c *ledger.JobCommand) { c.Job.MaxRuntime = time.Hour },
		"array":               func(c *ledger.JobCommand) { c.Indices = []int{0, 1} },
	} {
		c := jobIn(r)
		change(&c)
		_, err := w.ledger.SubmitJobs(t.Context(), ann, c)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
	_, err := w.ledger.SubmitJobs(t.Context(), bob, jobIn(r))
	require.ErrorContains(t, err, "must be a reservation: there is none of that id", "another organization's")
	first := w.submit(ann, jobIn(r))
	_, err = w.ledger.SubmitJobs(t.Context(), ann, jobIn(r))
	require.ErrorContains(t, err, first.ID, "it is one job's")
	w.mustCancel(ann, first.ID)
	w.submit(ann, jobIn(r))
}

// A job that somebody waits for has the pool's share of such work, and others wait for theirs.
func TestAJobHasTheShareOfItsWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	_, err := w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) { p.OnlineShare = 750 })
	require.NoError(t, err)
	first, second := w.submit(ann, jobOf(2, nil)), w.submit(ann, jobOf(2, nil))
	online := w.submit(ann, jobOf(4, func(c *ledger.JobCommand) { c.Job.Workload = capacity.Online }))
	w.pass(time.Second)
	require.Equal(t, []job.State{job.Scheduled, job.Pending, job.Scheduled},
		w.states([]job.Job{first, second, online}))
	_, err = w.ledger.SubmitJobs(t.Context(), ann, jobOf(4, nil))
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused, "more than batch work ever has")
}

// Whoever waits because of reservations is told which, as far as they are its own organization's.
func TestExplainingAJobThatReservationsKeepOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	mine, others := w.reserveHour(ann, 3*time.Hour, 8), w.reserveHour(bob, 5*time.Hour, 8)
	w.reserveHour(bob, 20*time.Hour, 8)
	j := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 8 * time.Hour }))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	e, err := w.ledger.ExplainJob(t.Context(), ann, j.ID)
	require.NoError(t, err)
	at := slices.IndexFunc(e.Blockers, func(b ledger.Blocker) bool { return b.Code == "reserved" })
	require.GreaterOrEqual(t, at, 0, "%+v", e)
	b := e.Blockers[at]
	require.Equal(t, "2 reservations hold 16 GPUs of its pool in the time that it would run.", b.Message)
	require.Len(t, b.Evidence, 2)
	require.Contains(t, b.Evidence[0], mine.ID+": 8 GPUs from ")
	require.Contains(t, b.Evidence[1], "a reservation of another organization: 8 GPUs from ")
	require.NotContains(t, b.Evidence[1], others.ID)
	require.Equal(t, mine.Window.End, b.ClearsAt.P50)
	require.Contains(t, b.Fix, "--max-runtime 171m")
	fits := 171 * time.Minute
	_, err = w.ledger.EditJob(t.Context(), ann, j.ID, w.readJob(j.ID).Version, ledger.JobEdit{MaxRuntime: &fits})
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State(), "what was said helps")
}
