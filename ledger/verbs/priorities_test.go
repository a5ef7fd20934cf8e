package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

func ofClass(gpus int, name job.Priority, changes ...func(*ledger.JobCommand)) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) {
		c.Job.Priority = name
		for _, change := range changes {
			change(c)
		}
	})
}

// Classes are named by the installation: who may use them, which jobs have that name none, and who goes first.
func TestPrioritiesAreConfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Priorities = ledger.Priorities{Default: "usual", Classes: map[string]ledger.PriorityClass{
		"usual": {Value: 5}, "urgent": {Value: 50, Least: ledger.Admin}, "spare": {Value: -5, Preemptible: new(false)},
		"theirs": {Value: 6, Organizations: []string{"nobody"}}}}
	w.ledger = w.restartedLedger()
	ann := w.newSubmitter("ann")
	submit := func(c ledger.JobCommand) error {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, c)
		return err
	}
	var invalid *ledger.InvalidError
	require.ErrorAs(t, submit(ofClass(1, job.High)), &invalid)
	require.Equal(t, "must be one of spare, usual, theirs, urgent: these are the priorities here", invalid.Rule)
	var may *ledger.PriorityError
	require.ErrorAs(t, submit(ofClass(1, "urgent")), &may)
	require.Equal(t, ledger.Admin, may.Least)
	require.ErrorAs(t, submit(ofClass(1, "theirs")), &may)
	require.ErrorAs(t, submit(ofClass(1, "spare", func(c *ledger.JobCommand) { c.Preemptible = new(true) })), &invalid)
	require.Equal(t, "preemptible", invalid.Field)

	w.run(ann, ofClass(8, "usual"))
	spare, usual := w.submit(ann, ofClass(8, "spare")), w.submit(ann, ofClass(8, ""))
	require.Equal(t, job.Priority("usual"), usual.Priority)
	order := func() (all []string) {
		for _, q := range w.queue() {
			all = append(all, q.ID)
		}
		return all
	}
	require.Equal(t, []string{usual.ID, spare.ID}, order())
	_, err := w.edit(ann, spare.ID, ledger.JobEdit{Priority: new(job.Priority("none"))})
	require.ErrorAs(t, err, &invalid)

	// A class that is configured no more counts as the default one.
	w.scheduling.Priorities = ledger.Priorities{Default: "spare",
		Classes: map[string]ledger.PriorityClass{"spare": {Value: 1}}}
	w.ledger = w.restartedLedger()
	require.Equal(t, []string{spare.ID, usual.ID}, order(), "by when they came")
	why, err := w.ledger.ExplainJob(t.Context(), ann, usual.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "Its priority usual is not configured any more: it counts as spare.")
}

// Jobs of a class that is never told to leave stay, whatever they say, and nobody leaves for a class that has nobody
// leave.
func TestClassesSayWhoLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		low, high ledger.PriorityClass
		leaves    bool
	}{
		"as the job says":            {leaves: true},
		"nobody of the lower class":  {low: ledger.PriorityClass{Preemptible: new(false)}},
		"nobody for the higher one":  {high: ledger.PriorityClass{NoPreempting: true}},
		"everybody of a lower class": {low: ledger.PriorityClass{Preemptible: new(true)}, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.high.Value = 2
			w.scheduling.Preemption, w.scheduling.MinRuntime = true, time.Minute
			w.scheduling.Priorities = ledger.Priorities{Classes: map[string]ledger.PriorityClass{"low": c.low,
				"normal": {Value: 1}, "high": c.high}}
			w.ledger = w.restartedLedger()
			ann := w.newSubmitter("ann")
			r := w.run(ann, ofClass(8, job.Low, func(j *ledger.JobCommand) {
				if j.Job.MaxRuntime = 20 * time.Hour; c.low.Preemptible == nil {
					j.Preemptible = new(true)
				}
			}))
			w.pass(2 * time.Minute)
			w.submit(ann, urgent(8))
			w.doDueWork()
			require.Equal(t, c.leaves, w.readJob(r.ID).Ending.Is())
		})
	}
}

// The numbers of a pool's rules bound who may wait, and for how long a job runs that does not say.
func TestNumbersOfAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Pools = map[string]ledger.Scheduling{"lab": {Tuning: ledger.Tuning{MostWaiting: 2, MostWaitingOfOne: 1,
		DefaultRuntime: time.Hour, HalfLife: 24 * time.Hour}}}
	w.ledger = w.restartedLedger()
	ann, bob, eve := w.newSubmitter("ann"), w.newSubmitter("bob"), w.newSubmitter("eve")
	one := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime, c.Held = 0, true }))
	require.Equal(t, time.Hour, one.MaxRuntime)
	var full *ledger.QueueFullError
	held := jobOf(1, func(c *ledger.JobCommand) { c.Held = true })
	_, err := w.ledger.SubmitJobs(t.Context(), ann, held)
	require.ErrorAs(t, err, &full)
	require.Equal(t, ledger.QueueFullError{Pool: "lab", Most: 1, OfOne: true, Asked: 1}, *full)
	require.False(t, full.IsTooMany())
	_, err = w.ledger.SubmitJobs(t.Context(), bob, jobOf(1, func(c *ledger.JobCommand) { c.Indices = []int{0, 1, 2} }))
	require.EqualError(t, err, "these are 3 jobs at once, and your organization may have 1 waiting or running in pool lab")
	w.submit(bob, held)
	_, err = w.ledger.SubmitJobs(t.Context(), eve, held)
	require.ErrorAs(t, err, &full)
	require.Equal(t, ledger.QueueFullError{Pool: "lab", Most: 2, Asked: 1}, *full)
	c := ledger.Config{Scheduling: ledger.NewLiveScheduling(w.scheduling)}.WithDefaults()
	require.Equal(t, 24*time.Hour, c.FairnessOf("lab").HalfLife)
	require.Equal(t, 7*24*time.Hour, c.FairnessOf("other").HalfLife)
}
