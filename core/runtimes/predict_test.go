package runtimes_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/runtimes"
)

// runs are some of so many minutes, the newest first.
func runs(user, name string, gpus int, minutes ...int) (out []runtimes.Run) {
	for _, m := range minutes {
		out = append(out, runtimes.Run{User: user, Name: name, GPUs: gpus, Length: time.Duration(m) * time.Minute})
	}
	return out
}

func historyOf(name string, all ...[]runtimes.Run) (h runtimes.History) {
	for _, some := range all {
		for _, r := range some {
			h.All = append(h.All, r)
			if r.Name == name {
				h.Named = append(h.Named, r)
			}
		}
	}
	return h
}

func TestTheMostAlikeRunsOfWhichThereAreEnough(t *testing.T) {
	t.Parallel()
	train := runtimes.Subject{User: "ann", Name: "train", GPUs: 4, Limit: 24 * time.Hour}
	same, larger := runs("ann", "train", 4, 60, 61, 62), runs("ann", "train", 8, 30, 30, 30)
	bobs, other := runs("bob", "train", 4, 90, 90, 90), runs("ann", "eval", 4, 5, 5, 5)
	for name, c := range map[string]struct {
		history []runtimes.Run
		subject runtimes.Subject
		basis   string
		p50     time.Duration
	}{
		"all is the same": {append(same, larger...), train, "3 runs of train on 4 GPUs by this person",
			61 * time.Minute},
		"other GPUs": {append(same[:2:2], larger...), train, "5 runs of train by this person", 30 * time.Minute},
		"somebody else": {append(same[:1:1], bobs...), train, "4 runs of train on 4 GPUs in this organization",
			90 * time.Minute},
		"another name": {append(same[:2:2], other...), train, "5 runs on 4 GPUs by this person", 5 * time.Minute},
		"no name": {append(same, other...), runtimes.Subject{User: "ann", GPUs: 4},
			"6 runs on 4 GPUs by this person", 32*time.Minute + 30*time.Second},
		"nothing alike": {other, runtimes.Subject{User: "eve", Name: "x", GPUs: 1}, "3 runs in this organization",
			5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := runtimes.Predict(historyOf(c.subject.Name, c.history), c.subject)
			require.True(t, ok)
			require.Equal(t, c.basis, got.Basis)
			require.Equal(t, c.p50, got.P50)
			require.Less(t, got.P10, got.P50)
			require.Greater(t, got.P90, got.P50)
		})
	}
	_, ok := runtimes.Predict(historyOf("train", same[:2]), train)
	require.False(t, ok, "two runs are too few")
}

func TestOnlyTheNewestRunsCount(t *testing.T) {
	t.Parallel()
	var minutes []int
	for range 50 {
		minutes = append(minutes, 10)
	}
	for range 50 {
		minutes = append(minutes, 1000)
	}
	got, ok := runtimes.Predict(historyOf("a", runs("ann", "a", 1, minutes...)),
		runtimes.Subject{User: "ann", Name: "a", GPUs: 1})
	require.True(t, ok)
	require.Equal(t, runtimes.Prediction{P10: 10*time.Minute - time.Second, P50: 10 * time.Minute,
		P90: 10*time.Minute + time.Second, Basis: "50 runs of a on 1 GPU by this person"}, got)
}

func TestWhatRunsIsComparedWithWhatTookLonger(t *testing.T) {
	t.Parallel()
	h := historyOf("a", runs("ann", "a", 1, 10, 20, 30, 40, 50, 60, 70, 80))
	at := func(age, limit time.Duration) runtimes.Prediction {
		s := runtimes.Subject{User: "ann", Name: "a", GPUs: 1, Age: age, Limit: limit}
		got, ok := runtimes.Predict(h, s)
		require.True(t, ok)
		require.GreaterOrEqual(t, got.P10, age)
		return got
	}
	young, old := at(0, 0), at(45*time.Minute, 0)
	require.Equal(t, 45*time.Minute, young.P50)
	require.Equal(t, 65*time.Minute, old.P50)
	require.Equal(t, "4 runs of a on 1 GPU by this person that took longer than it has by now", old.Basis)
	limited := at(45*time.Minute, time.Hour)
	require.Equal(t, time.Hour, limited.P90, "never longer than its limit")
	outlived := at(100*time.Minute, 5*time.Hour)
	require.Equal(t, runtimes.Prediction{P10: 110 * time.Minute, P50: 200 * time.Minute, P90: 5 * time.Hour,
		Basis: "it has run for longer than most of 8 runs of a on 1 GPU by this person"}, outlived)
	over := at(6*time.Hour, 5*time.Hour)
	require.Equal(t, 6*time.Hour, over.P90, "in its grace")
}

func TestWhatWasCutWouldHaveRunForLonger(t *testing.T) {
	t.Parallel()
	all := runs("ann", "a", 1, 60, 60, 60, 20, 20, 20)
	for i := range 3 {
		all[i].Cut = true
	}
	got, ok := runtimes.Predict(historyOf("a", all), runtimes.Subject{User: "ann", Name: "a", GPUs: 1,
		Limit: 3 * time.Hour})
	require.True(t, ok)
	require.Equal(t, 3*time.Hour, got.P50)
	require.Equal(t, 3*time.Hour, got.P90)
	require.Less(t, got.P10, 20*time.Minute)
}

func TestWhichEndsCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state  job.State
		reason string
		length time.Duration
		want   bool
	}{
		{job.Completed, "", time.Second, true},
		{job.Completed, "", 0, false},
		{job.Failed, job.Exit, time.Hour, true},
		{job.Failed, job.Exit, 30 * time.Second, false},
		{job.Failed, job.OOM, time.Hour, true},
		{job.Failed, job.TimeLimit, 30 * time.Second, true},
		{job.Failed, job.Lost, time.Hour, true},
		{job.Failed, job.Lost, 30 * time.Second, false},
		{job.Failed, job.LeaseOver, time.Hour, true},
		{job.Cancelled, job.Asked, time.Hour, true},
		{job.Cancelled, job.Asked, 30 * time.Second, false},
		{job.Running, "", time.Hour, false},
	} {
		require.Equal(t, c.want, runtimes.Counts(c.state, c.reason, c.length), "%+v", c)
	}
}

func TestTheRunOfAJob(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	j := job.New(job.Job{SubmittedBy: "key", Name: "a", Shape: capacity.Shape{Nodes: 2, PerNode: 4},
		MaxRuntime: time.Hour}, false, noon)
	for _, e := range []job.Event{job.Schedule, job.Start} {
		var err error
		j, err = j.Apply(e, "", noon)
		require.NoError(t, err)
	}
	require.Equal(t, runtimes.Subject{User: "key", Name: "a", GPUs: 8, Limit: time.Hour, Age: time.Minute},
		runtimes.SubjectOf(j, noon.Add(time.Minute)))
	_, counts := runtimes.RunOf(j)
	require.False(t, counts, "it is not over")
	j.UserID = "ann"
	j, err := j.Apply(job.Fail, job.TimeLimit, noon.Add(time.Hour))
	require.NoError(t, err)
	got, counts := runtimes.RunOf(j)
	require.True(t, counts)
	require.Equal(t, runtimes.Run{User: "ann", Name: "a", GPUs: 8, Length: time.Hour, Cut: true}, got)
}

// What was cancelled or lost would have run for longer, and so would the attempts before a short one.
func TestWhoCutsWhatIsLongIsNotTakenForShort(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ended := func(e job.Event, reason string, attempt int, ran time.Duration) runtimes.Run {
		j, err := job.Restore(job.Job{StartedAt: noon, Shape: capacity.Shape{Nodes: 1, PerNode: 2}, Attempt: attempt,
			GPUTime: 2 * ran}, job.Running)
		require.NoError(t, err)
		j, err = j.Apply(e, reason, noon.Add(5*time.Minute))
		require.NoError(t, err)
		got, counts := runtimes.RunOf(j)
		require.True(t, counts)
		return got
	}
	run := func(length time.Duration, cut bool) runtimes.Run {
		return runtimes.Run{GPUs: 2, Length: length, Cut: cut}
	}
	require.Equal(t, run(5*time.Minute, false), ended(job.Complete, "", 1, 6*time.Minute))
	require.Equal(t, run(5*time.Minute, false), ended(job.Fail, job.Exit, 1, 6*time.Minute))
	require.Equal(t, run(5*time.Minute, true), ended(job.Cancel, job.Asked, 1, 6*time.Minute))
	require.Equal(t, run(5*time.Minute, true), ended(job.Fail, job.Lost, 1, 6*time.Minute))
	require.Equal(t, run(20*time.Minute, true), ended(job.Complete, "", 3, 45*time.Minute), "two attempts of 20 minutes")
	require.Equal(t, run(5*time.Minute, false), ended(job.Complete, "", 3, 7*time.Minute))
}

// The estimate of Kaplan and Meier of a classic trial: remission under 6-MP in weeks, of which 12 of 21 were censored
// (Freireich et al., 1963). Its median is 23 weeks.
func TestCutRunsAreCountedAsKaplanAndMeierDo(t *testing.T) {
	t.Parallel()
	all := runs("ann", "a", 1, 600, 600, 600, 700, 1000, 1300, 1600, 2200, 2300)
	for _, cut := range runs("ann", "a", 1, 600, 900, 1000, 1100, 1700, 1900, 2000, 2500, 3200, 3200, 3400, 3500) {
		cut.Cut = true
		all = append(all, cut)
	}
	got, ok := runtimes.Predict(historyOf("a", all), runtimes.Subject{User: "ann", Name: "a", GPUs: 1,
		Limit: 9999 * time.Minute})
	require.True(t, ok)
	require.Equal(t, 2300*time.Minute, got.P50)
	require.Equal(t, 9999*time.Minute, got.P90, "nobody knows")
}

// Some short runs do not have long ones go first that are always cancelled.
func TestShortRunsDoNotHideLongOnes(t *testing.T) {
	t.Parallel()
	all := runs("ann", "a", 1, 1, 1, 1)
	turn := func() time.Duration {
		got, ok := runtimes.Predict(historyOf("a", all), runtimes.Subject{User: "ann", Name: "a", GPUs: 1,
			Limit: 24 * time.Hour})
		require.True(t, ok)
		return got.ForTurn()
	}
	require.Equal(t, time.Minute, turn())
	cancelled := runs("ann", "a", 1, 600)[0]
	cancelled.Cut = true
	all = append([]runtimes.Run{cancelled}, all...)
	require.Equal(t, 24*time.Hour/10, turn(), "one in four is long, and nobody knows how long")
	all = append([]runtimes.Run{cancelled, cancelled, cancelled}, all...)
	require.Equal(t, 24*time.Hour, turn(), "most are")
}

// Of jobs whose lengths are drawn anew each time, nine of ten end by the upper quantile, however many came
// before; of those whose work grows, at least four of five do.
func TestNineOfTenEndByTheUpperQuantile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		before      int
		growth      float64 // of a length, from one run to the next
		least, most float64
	}{
		"3 runs": {3, 0, 0.86, 0.95}, "6 runs": {6, 0, 0.86, 0.95}, "12 runs": {12, 0, 0.86, 0.96},
		"30 runs": {30, 0, 0.87, 0.97}, "50 runs": {50, 0, 0.87, 0.97}, "growing": {50, 0.02, 0.8, 1},
	} {
		within, low := 0, 0
		const times = 2000
		for range times {
			draw := func(i int) time.Duration {
				x := math.Exp(7 + random.NormFloat64() + c.growth*float64(i))
				return time.Duration(x * float64(time.Second))
			}
			var h runtimes.History
			for i := c.before - 1; i >= 0; i-- {
				h.All = append(h.All, runtimes.Run{User: "ann", GPUs: 1, Length: draw(i)})
			}
			got, ok := runtimes.Predict(h, runtimes.Subject{User: "ann", GPUs: 1})
			require.True(t, ok)
			next := draw(c.before)
			if next <= got.P90 {
				within++
			}
			if next < got.P10 {
				low++
			}
		}
		require.GreaterOrEqual(t, float64(within)/times, c.least, name)
		require.LessOrEqual(t, float64(within)/times, c.most, name)
		require.LessOrEqual(t, float64(low)/times, 0.15, name)
	}
}
