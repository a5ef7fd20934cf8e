package verbs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// jobBatch are submissions of a batch.
func jobBatch(all ...ledger.JobCommand) (batch []ledger.JobItem) {
	for _, c := range all {
		batch = append(batch, ledger.JobItem{Request: c})
	}
	return batch
}

func (w *world) submitMany(who ledger.Actor, batch []ledger.JobItem) []ledger.JobOutcome {
	w.Helper()
	got, err := w.ledger.SubmitMany(w.Context(), who, batch)
	require.NoError(w, err)
	require.Len(w, got, len(batch))
	return got
}

// arrayOf is a job for each of n indices.
func arrayOf(n int) ledger.JobCommand {
	return jobOf(1, func(c *ledger.JobCommand) {
		for i := range n {
			c.Indices = append(c.Indices, i)
		}
	})
}

// A submission that is refused leaves nothing, and does not undo those around it.
func TestABatchOfJobsStandsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	other := w.submit(w.newSubmitter("bob"), jobOf(1, nil))
	batch := jobBatch(jobOf(1, nil), jobOf(1000, nil), arrayOf(3),
		jobOf(1, func(c *ledger.JobCommand) {
			c.Job.Dependencies = []job.Depends{{JobID: other.ID, Condition: job.AfterOK}}
		}),
		jobOf(1, func(c *ledger.JobCommand) { c.Job.Command.Arguments = nil }),
		jobOf(1, func(c *ledger.JobCommand) { c.Needs.Pool = "nowhere" }), jobOf(2, nil))
	batch = append(batch, ledger.JobItem{Invalid: ledger.ErrTaken})
	got := w.submitMany(ann, batch)
	require.Len(t, got[2].Jobs, 3)
	for i, o := range got {
		if slices.Contains([]int{0, 2, 6}, i) {
			require.NoError(t, o.Err, i)
			for _, j := range o.Jobs {
				require.Equal(t, j.Version, w.readJob(j.ID).Version)
			}
			continue
		}
		require.Error(t, o.Err, i)
		require.Empty(t, o.Jobs, i)
	}
	var refused *ledger.RefusedError
	require.ErrorAs(t, got[1].Err, &refused)
	var invalid *ledger.InvalidError
	require.ErrorAs(t, got[3].Err, &invalid)
	require.Equal(t, "dependencies[0].job_id", invalid.Field, "another organization's job is none")
	require.ErrorIs(t, got[7].Err, ledger.ErrTaken)
	require.Len(t, w.readEvents("job.submitted"), 1+5)
}

// What a batch put into a queue counts for those behind it.
func TestABatchOfJobsFillsTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.submitMany(ann, jobBatch(arrayOf(ledger.MostArray)))
	w.submitMany(ann, jobBatch(arrayOf(ledger.MostJobsOfOne-ledger.MostArray-2)))
	got := w.submitMany(ann, jobBatch(jobOf(1, nil), arrayOf(2), jobOf(1, nil), jobOf(1, nil)))
	require.NoError(t, got[0].Err)
	require.NoError(t, got[2].Err)
	for _, i := range []int{1, 3} {
		var full *ledger.QueueFullError
		require.ErrorAs(t, got[i].Err, &full)
		require.True(t, full.OfOne)
	}
}

// Each submission of a batch counts for the rate, and one that is refused does not.
func TestABatchOfJobsCountsForTheRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Rate = queue.Rate{Every: time.Minute, Burst: 2}
	w.ledger = w.restartedLedger()
	wrong := jobOf(1, func(c *ledger.JobCommand) { c.Job.Dependencies = []job.Depends{{JobID: "job_404"}} })
	got := w.submitMany(w.newSubmitter("ann"), jobBatch(wrong, jobOf(1, nil), wrong, arrayOf(2), jobOf(1, nil)))
	require.NoError(t, got[1].Err)
	require.NoError(t, got[3].Err)
	var rate *ledger.SubmissionRateError
	require.ErrorAs(t, got[4].Err, &rate)
}

// A batch makes no more than the largest array does: all of it is one transaction.
func TestTheBoundsOfABatchOfJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	large := arrayOf(300)
	large.Job.Command.Arguments = []string{"true", strings.Repeat("x", 100_000)}
	for name, batch := range map[string][]ledger.JobItem{"empty": nil, "many": make([]ledger.JobItem, ledger.MaxBatch+1),
		"jobs": jobBatch(arrayOf(ledger.MostArray), jobOf(1, nil)), "bytes": jobBatch(large, large)} {
		_, err := w.ledger.SubmitMany(t.Context(), ann, batch)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, "items", invalid.Field, name)
	}
	require.Empty(t, w.readEvents("job.submitted"))
}

func TestABatchOfJobsThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hurried := verbs.New(w.store, &ids.UUID{}, ledger.Config{BatchTime: time.Nanosecond})
	got, err := hurried.SubmitMany(t.Context(), w.newSubmitter("ann"), jobBatch(jobOf(1, nil), jobOf(1, nil)))
	require.NoError(t, err)
	require.NoError(t, got[0].Err, "there is always some progress")
	require.ErrorIs(t, got[1].Err, ledger.ErrNotTried)
}
