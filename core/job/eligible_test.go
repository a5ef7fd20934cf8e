package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
)

type steps []func(job.Job) job.Job

// Since when a job's wait counts, after what was done to it at noon and some hours later.
func TestWaitingCountsFromWhenAJobCouldRun(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	after := []job.Depends{{JobID: "job_1", Condition: job.AfterOK}}
	step := func(e job.Event, hours int) func(job.Job) job.Job {
		return func(j job.Job) job.Job {
			next, err := j.Apply(e, "", at(hours))
			require.NoError(t, err)
			return next
		}
	}
	delay := func(until, hours int) func(job.Job) job.Job {
		return func(j job.Job) job.Job { return j.Delay(at(until), at(hours)) }
	}
	ran := func(hours int) func(job.Job) job.Job {
		return func(j job.Job) job.Job {
			j.GPUTime += time.Duration(hours) * time.Hour * time.Duration(j.Shape.GPUs())
			return j
		}
	}
	letWait := func(hours int) func(job.Job) job.Job {
		return func(j job.Job) job.Job { return j.LetWait(at(hours)) }
	}
	for name, c := range map[string]struct {
		is    job.Job
		held  bool
		steps steps
		want  time.Time
	}{
		"submitted":               {want: noon},
		"for later":               {is: job.Job{NotBefore: at(3)}, want: at(3)},
		"for a time that is past": {is: job.Job{NotBefore: at(-3)}, want: noon},
		"held":                    {held: true},
		"held, for later":         {is: job.Job{NotBefore: at(3)}, held: true},
		"held and released":       {held: true, steps: steps{step(job.Release, 5)}, want: at(5)},
		"released before its time": {is: job.Job{NotBefore: at(9)}, held: true,
			steps: steps{step(job.Release, 5)}, want: at(9)},
		"held again":              {steps: steps{step(job.Hold, 5)}},
		"held again and released": {steps: steps{step(job.Hold, 5), step(job.Release, 6)}, want: at(6)},
		"after another":           {is: job.Job{Dependencies: after}},
		"after another, which has come": {is: job.Job{Dependencies: after},
			steps: steps{letWait(4), letWait(7)}, want: at(4)},
		"after another, for later": {is: job.Job{Dependencies: after, NotBefore: at(9)},
			steps: steps{letWait(4)}, want: at(9)},
		"after another, held": {is: job.Job{Dependencies: after}, held: true, steps: steps{letWait(4)}},
		"after another, released": {is: job.Job{Dependencies: after}, held: true,
			steps: steps{step(job.Release, 4)}},
		"put off":                        {steps: steps{delay(8, 5)}, want: at(8)},
		"put off, and not":               {steps: steps{delay(8, 5), delay(-1, 6)}, want: at(6)},
		"put off to a time that is past": {steps: steps{delay(4, 5)}, want: noon},
		"put off while it is held":       {held: true, steps: steps{delay(8, 5)}},
		"tried again": {
			steps: steps{step(job.Schedule, 1), ran(2), step(job.Requeue, 3)}, want: noon},
		"tried again, held and released": {
			steps: steps{step(job.Schedule, 1), ran(2), step(job.Requeue, 3), step(job.Hold, 4),
				step(job.Release, 9)}, want: at(9 - 2)},
		"tried again, put off, and not": {
			steps: steps{step(job.Schedule, 1), ran(2), step(job.Requeue, 3), delay(9, 4), delay(-1, 5)}, want: at(5 - 2)},
		"started before anybody noted that": {is: job.Job{Dependencies: after},
			steps: steps{step(job.Schedule, 4)}, want: at(4)},
	} {
		c.is.Shape = capacity.Shape{Nodes: 1, PerNode: 4}
		j := job.New(c.is, c.held, noon)
		for _, do := range c.steps {
			j = do(j)
		}
		require.Equal(t, c.want, j.EligibleAt, name)
	}
}

// What a job ran is no wait, before and after its end.
func TestWhatAJobRanIsNoWait(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	j := job.New(job.Job{Shape: capacity.Shape{Nodes: 1, PerNode: 4}}, false, noon)
	do := func(e job.Event, hours int) {
		t.Helper()
		next, err := j.Apply(e, "", at(hours))
		require.NoError(t, err)
		j = next
	}
	holds := func(hours int) { j.GPUTime += time.Duration(hours) * time.Hour * 4 }
	require.Equal(t, noon, j.WaitsSince())
	do(job.Schedule, 1)
	do(job.Start, 1)
	require.Equal(t, noon, j.WaitsSince())
	once, err := j.Apply(job.Complete, "", at(3))
	require.NoError(t, err)
	once.GPUTime = 7 * time.Hour * 4
	require.Equal(t, noon, once.WaitsSince())
	do(job.Requeue, 3)
	holds(2)
	require.Equal(t, at(2), j.WaitsSince(), "it has waited for one hour")
	do(job.Schedule, 4)
	do(job.Start, 4)
	require.Equal(t, at(2), j.WaitsSince(), "it waited for two")
	do(job.Complete, 9)
	holds(5)
	require.Equal(t, at(2), j.WaitsSince())
	holds(9) // nobody could hear of its end
	require.Equal(t, at(4), j.WaitsSince(), "no wait is negative")
}
