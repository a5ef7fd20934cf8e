package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func running(t *testing.T, j job.Job) job.Job {
	t.Helper()
	j = job.New(j, false, noon)
	for _, e := range []job.Event{job.Schedule, job.Start} {
		var err error
		j, err = j.Apply(e, "", noon)
		require.NoError(t, err)
	}
	return j
}

func TestWhatAnAttemptsEndMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end     job.End
		retries job.Retries
		want    job.State
	}{
		"success":                      {job.End{Ran: true}, job.Retries{Failed: 9}, job.Completed},
		"its own failure, no retries":  {job.End{Code: job.Exit, ExitCode: 1}, job.Retries{Lost: 9}, job.Failed},
		"its own failure, tried again": {job.End{Code: job.Exit, ExitCode: 1}, job.Retries{Failed: 1}, job.Pending},
		"killed, tried again":          {job.End{Code: job.Signalled, ExitCode: 137}, job.Retries{Failed: 1}, job.Pending},
		"out of time":                  {job.End{Code: job.TimeLimit}, job.Retries{Failed: 9, Lost: 9}, job.Failed},
		"out of memory":                {job.End{Code: job.OOM}, job.Retries{Failed: 9, Lost: 9}, job.Failed},
		"lost":                         {job.End{Code: job.Lost}, job.Retries{Lost: 1}, job.Pending},
		"lost, no retries":             {job.End{Code: job.Lost}, job.Retries{Failed: 9}, job.Failed},
		"not started":                  {job.End{Code: job.NotStarted}, job.Retries{Lost: 1}, job.Failed},
		"not started, tried again":     {job.End{Code: job.NotStarted}, job.Retries{Failed: 1}, job.Pending},
		"not served":                   {job.End{Code: job.Unserved}, job.Retries{Lost: 1}, job.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := running(t, job.Job{Retries: c.retries}).Finish(c.end, noon)
			require.NoError(t, err)
			require.Equal(t, c.want, got.State())
			require.Equal(t, c.end.Code, got.Reason)
			require.Equal(t, c.want != job.Pending, got.EndedAt.Equal(noon))
			require.Equal(t, c.want == job.Pending, got.NotBefore.After(noon))
		})
	}
}

func TestRetriesAreBoundedAndWaitLonger(t *testing.T) {
	t.Parallel()
	j, now, before := running(t, job.Job{Retries: job.Retries{Failed: 12}}), noon, time.Duration(0)
	for range 12 {
		var err error
		j, err = j.Finish(job.End{Code: job.Exit, ExitCode: 2, Ran: true}, now)
		require.NoError(t, err)
		require.Equal(t, job.Pending, j.State())
		wait := j.NotBefore.Sub(now)
		require.GreaterOrEqual(t, wait, before)
		require.LessOrEqual(t, wait, 10*time.Minute)
		before, now = wait, j.NotBefore
		for _, e := range []job.Event{job.Schedule, job.Start} {
			j, err = j.Apply(e, "", now)
			require.NoError(t, err)
		}
	}
	j, err := j.Finish(job.End{Code: job.Exit, ExitCode: 2, Ran: true}, now)
	require.NoError(t, err)
	require.Equal(t, job.Failed, j.State())
	require.Equal(t, 13, j.Attempt)
	require.Equal(t, 2, j.End.ExitCode)
}

func TestAGangEndsWithItsFirstFailure(t *testing.T) {
	t.Parallel()
	ok, bad := job.Rank{State: job.RankEnded}, job.Rank{State: job.RankEnded, End: job.End{Code: job.Exit, ExitCode: 3}}
	runs, ordered := job.Rank{State: job.RankRunning}, job.Rank{State: job.Ordered}
	for _, c := range []struct {
		ranks []job.Rank
		over  bool
		code  string
		all   bool
	}{
		{nil, false, "", false},
		{[]job.Rank{runs, ordered}, false, "", false},
		{[]job.Rank{runs, ok}, false, "", true},
		{[]job.Rank{ok, ok}, true, "", true},
		{[]job.Rank{runs, bad, ok}, true, job.Exit, true},
	} {
		end, over := job.Combine(c.ranks)
		require.Equal(t, c.over, over, c.ranks)
		require.Equal(t, c.all, job.AllRunning(c.ranks), c.ranks)
		if over {
			require.Equal(t, c.code, end.Code)
		}
	}
}

func TestThePeakOfAGangIsThatOfItsHungriestNode(t *testing.T) {
	t.Parallel()
	peak := func(n int64, code string) job.Rank {
		return job.Rank{State: job.RankEnded, End: job.End{Code: code, PeakMemory: n}}
	}
	for _, c := range []struct {
		ranks []job.Rank
		code  string
		peak  int64
	}{
		{[]job.Rank{peak(3, ""), peak(5, ""), peak(4, "")}, "", 5},
		{[]job.Rank{peak(3, ""), peak(1, job.OOM), peak(4, job.Exit)}, job.OOM, 4},
	} {
		end, over := job.Combine(c.ranks)
		require.True(t, over)
		require.Equal(t, c.code, end.Code)
		require.Equal(t, c.peak, end.PeakMemory)
	}
}

func TestConditionsOnOtherJobs(t *testing.T) {
	t.Parallel()
	pending := job.New(job.Job{}, false, noon)
	runs := running(t, job.Job{})
	done, err := runs.Finish(job.End{Ran: true}, noon)
	require.NoError(t, err)
	failed, err := runs.Finish(job.End{Code: job.Exit}, noon)
	require.NoError(t, err)
	again, err := running(t, job.Job{Retries: job.Retries{Failed: 1}}).
		Finish(job.End{Code: job.Exit, Ran: true}, noon)
	require.NoError(t, err)
	cancelled, err := pending.Apply(job.Cancel, job.Asked, noon)
	require.NoError(t, err)
	for _, c := range []struct {
		on    job.Job
		want  map[job.Condition]job.Verdict
		about string
	}{
		{pending, map[job.Condition]job.Verdict{}, "pending"},
		{runs, map[job.Condition]job.Verdict{job.After: job.Met}, "running"},
		{again, map[job.Condition]job.Verdict{job.After: job.Met}, "it failed, and is tried again"},
		{done, map[job.Condition]job.Verdict{job.After: job.Met, job.AfterOK: job.Met, job.AfterAny: job.Met,
			job.AfterNotOK: job.Never}, "completed"},
		{failed, map[job.Condition]job.Verdict{job.After: job.Met, job.AfterOK: job.Never, job.AfterAny: job.Met,
			job.AfterNotOK: job.Met}, "failed"},
		{cancelled, map[job.Condition]job.Verdict{job.After: job.Never, job.AfterOK: job.Never, job.AfterAny: job.Met,
			job.AfterNotOK: job.Met}, "cancelled before it started"},
	} {
		for _, condition := range []job.Condition{job.After, job.AfterOK, job.AfterNotOK, job.AfterAny} {
			require.Equal(t, c.want[condition], condition.Judge(job.ProgressOf(c.on)), "%s: %s", condition, c.about)
		}
	}
	waits := job.Job{Dependencies: []job.Depends{{JobID: "a", Condition: job.AfterOK},
		{JobID: "b", Condition: job.AfterOK}}}
	verdict, _ := waits.JudgeAll(map[string]job.Progress{"a": job.ProgressOf(done), "b": job.ProgressOf(done)})
	require.Equal(t, job.Met, verdict)
	verdict, on := waits.JudgeAll(map[string]job.Progress{"a": job.ProgressOf(runs), "b": job.ProgressOf(failed)})
	require.Equal(t, job.Never, verdict)
	require.Equal(t, waits.Dependencies[1:], on)
	verdict, on = waits.JudgeAll(map[string]job.Progress{"a": job.ProgressOf(runs), "b": job.ProgressOf(runs)})
	require.Equal(t, job.Wait, verdict)
	require.Equal(t, waits.Dependencies, on, "it waits for both")
	verdict, _ = waits.JudgeAll(map[string]job.Progress{"a": job.ProgressOf(done)})
	require.Equal(t, job.Never, verdict, "one that is not there")
}

// A condition on an array is one on all of its jobs.
func TestConditionsOnArrays(t *testing.T) {
	t.Parallel()
	pending, runs := job.New(job.Job{}, false, noon), running(t, job.Job{})
	done, err := runs.Finish(job.End{Ran: true}, noon)
	require.NoError(t, err)
	failed, err := runs.Finish(job.End{Code: job.Exit}, noon)
	require.NoError(t, err)
	unstarted, err := pending.Apply(job.Cancel, job.Asked, noon)
	require.NoError(t, err)
	for _, c := range []struct {
		of    []job.Job
		want  map[job.Condition]job.Verdict
		about string
	}{
		{nil, map[job.Condition]job.Verdict{job.After: job.Never, job.AfterOK: job.Never, job.AfterAny: job.Never,
			job.AfterNotOK: job.Never}, "nothing"},
		{[]job.Job{done, pending}, map[job.Condition]job.Verdict{}, "one waits"},
		{[]job.Job{done, runs}, map[job.Condition]job.Verdict{job.After: job.Met}, "one runs"},
		{[]job.Job{failed, runs}, map[job.Condition]job.Verdict{job.After: job.Met, job.AfterOK: job.Never},
			"one has failed, one runs"},
		{[]job.Job{done, done}, map[job.Condition]job.Verdict{job.After: job.Met, job.AfterOK: job.Met, job.AfterAny: job.Met,
			job.AfterNotOK: job.Never}, "all completed"},
		{[]job.Job{failed, done}, map[job.Condition]job.Verdict{job.After: job.Met, job.AfterOK: job.Never,
			job.AfterAny: job.Met, job.AfterNotOK: job.Met}, "one failed"},
		{[]job.Job{unstarted, runs}, map[job.Condition]job.Verdict{job.After: job.Never, job.AfterOK: job.Never},
			"one was cancelled before it started"},
	} {
		var all job.Progress
		for _, j := range c.of {
			all = all.Add(job.ProgressOf(j))
		}
		for _, condition := range []job.Condition{job.After, job.AfterOK, job.AfterNotOK, job.AfterAny} {
			require.Equal(t, c.want[condition], condition.Judge(all), "%s: %s", condition, c.about)
		}
	}
}
