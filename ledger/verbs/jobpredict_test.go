package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// named is a job of so many GPUs, which may run for four hours.
func named(name string, gpus int) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) { c.Job.Name, c.Job.MaxRuntime = name, 4*time.Hour })
}

// Where nothing is known of how long jobs run, nothing is said but why.
func TestWithoutHistoryNoStartIsPredicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, named("train", 8))
	w.submit(ann, named("train", 8))
	w.submit(ann, jobOf(1, func(c *ledger.JobCommand) {
		c.Job.Dependencies = []job.Depends{{JobID: r.ID, Condition: job.AfterOK}}
	}))
	w.pass(time.Minute)
	queue := w.queue()
	require.Len(t, queue, 2)
	require.Nil(t, queue[0].Start)
	require.Contains(t, queue[0].Unpredicted, "too few jobs")
	require.Nil(t, queue[1].Start)
	require.Equal(t, "it waits for another job", queue[1].Unpredicted)
	runs := w.readJob(r.ID)
	w.read(func(reader ledger.Reader) error {
		end, why, err := w.ledger.PredictEnd(reader, runs)
		require.Nil(t, end)
		require.Contains(t, why, "fewer than three")
		return err
	})
}

// What has run before says when a job that runs is over, and when the one behind it starts.
func TestStartsArePredictedFromRunsLikeThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	wait := boot
	next := func() running {
		r := running{Job: w.submit(ann, named("train", 8))}
		w.pass(wait)
		w.begin(&r)
		wait = time.Second // its nodes are warm by now
		return r
	}
	for range 4 {
		r := next()
		w.pass(10 * time.Minute)
		w.endAll(r, succeeded)
	}
	r := next()
	behind, third := w.submit(ann, named("train", 8)), w.submit(ann, named("train", 8))
	w.pass(4 * time.Minute)
	runs := w.readJob(r.ID)
	began := runs.StartedAt
	w.read(func(reader ledger.Reader) error {
		end, why, err := w.ledger.PredictEnd(reader, runs)
		require.NotNil(t, end, why)
		require.WithinDuration(t, began.Add(10*time.Minute), end.P50, time.Minute)
		require.Contains(t, end.Basis, "train")
		return err
	})
	queue := w.queue()
	require.Equal(t, []string{behind.ID, third.ID}, []string{queue[0].ID, queue[1].ID})
	require.NotNil(t, queue[0].Start, queue[0].Unpredicted)
	require.NotNil(t, queue[1].Start, queue[1].Unpredicted)
	require.WithinDuration(t, began.Add(10*time.Minute), queue[0].Start.P50, time.Minute)
	require.WithinDuration(t, began.Add(20*time.Minute), queue[1].Start.P50, 2*time.Minute)
	require.False(t, queue[0].Start.P90.Before(queue[0].Start.P50))
}
