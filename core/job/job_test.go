package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
)

func TestTheTableIsSound(t *testing.T) {
	t.Parallel()
	require.NoError(t, job.Machine.Check())
	require.Equal(t, []job.State{job.Pending, job.Held, job.Scheduled, job.Running, job.Preempted}, job.Machine.Live())
}

// Each pair of a state and an event: where it leads, or that it is not possible.
func TestEveryEventInEveryState(t *testing.T) {
	t.Parallel()
	leads := map[job.State]map[job.Event]job.State{
		job.Pending: {job.Schedule: job.Scheduled, job.Hold: job.Held, job.Fail: job.Failed, job.Cancel: job.Cancelled},
		job.Held:    {job.Release: job.Pending, job.Fail: job.Failed, job.Cancel: job.Cancelled},
		job.Scheduled: {job.Start: job.Running, job.Requeue: job.Pending, job.Shelve: job.Held, job.Fail: job.Failed,
			job.Cancel: job.Cancelled},
		job.Running: {job.Complete: job.Completed, job.Preempt: job.Preempted, job.Requeue: job.Pending,
			job.Shelve: job.Held, job.Fail: job.Failed, job.Cancel: job.Cancelled},
		job.Preempted: {job.Requeue: job.Pending, job.Shelve: job.Held, job.Complete: job.Completed, job.Fail: job.Failed,
			job.Cancel: job.Cancelled},
	}
	for _, s := range job.Machine.States {
		for _, e := range job.Machine.Events() {
			to, err := job.Machine.Next(s, e)
			want, possible := leads[s][e]
			require.Equal(t, possible, err == nil, "%s in %s", e, s)
			if possible {
				require.Equal(t, want, to, "%s in %s", e, s)
			}
		}
	}
}
