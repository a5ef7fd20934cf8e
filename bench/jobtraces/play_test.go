package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/backtest"
)

// queueOfTwo is a job that takes a whole node for a thousand seconds, and one of half a node behind it.
func queueOfTwo() backtest.Trace {
	return backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{ID: "long", Submit: 1000, Duration: 1000, GPUs: 8}, {ID: "short", Submit: 1100, Duration: 50, GPUs: 4},
	}}
}

func TestAJobWaitsForTheOneThatHasItsNode(t *testing.T) {
	t.Parallel()
	for _, a := range listArms() {
		if a.preemptible {
			continue
		}
		s, err := newWorkload(queueOfTwo(), 1, 1).play(a, time.Minute)
		require.NoError(t, err, a.name)
		require.Equal(t, 900.0, s.longest, a.name)
		require.Equal(t, 450.0, s.mean, a.name)
		require.InDelta(t, (1+950.0/60)/2, s.slowdown, 1e-9, "%s: what is shorter than a minute counts as one", a.name)
		require.Zero(t, s.left+int(s.lost), a.name)
	}
}

func TestNobodyWaitsWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	for _, a := range listArms() {
		s, err := newWorkload(queueOfTwo(), 2, 1).play(a, time.Minute)
		require.NoError(t, err, a.name)
		require.Zero(t, s.longest, a.name)
		require.Equal(t, 1.0, s.slowdown, a.name)
	}
}

func TestWhatNoClusterHoldsIsLeftOut(t *testing.T) {
	t.Parallel()
	trace := queueOfTwo()
	trace.Jobs[0].GPUs = 16
	w := newWorkload(trace, 1, 1)
	require.Equal(t, 1, w.dropped)
	require.Len(t, w.jobs, 1)
	require.Equal(t, "short", w.jobs[0].ID)
}

func TestLimitsArePaddedAndRounded(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 3600, chooseLimit(1))
	require.EqualValues(t, 3600, chooseLimit(3600))
	require.EqualValues(t, 4*3600, chooseLimit(3601))
	require.EqualValues(t, 9000*3600, chooseLimit(9000*3600), "longer than any limit")
	for _, j := range newWorkload(drawTrace(), 4, 1).jobs {
		require.GreaterOrEqual(t, j.limit, j.Duration)
	}
}

func TestTheClusterIsAsLargeAsItsUseSays(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{ID: "1", Submit: 0, Duration: 1000, GPUs: 32}, {ID: "2", Submit: 500, Duration: 500, GPUs: 16},
		{ID: "3", Submit: 1000, Duration: 10, GPUs: 32},
	}}
	require.InDelta(t, 40.3, meanUse(trace), 0.1, "32,000, 8,000 and 320 GPU-seconds in 1,000 s")
	require.Equal(t, 48.0, peakUse(trace), "what ends leaves before what begins in that second")
	require.Equal(t, 10, config{}.nodesFor(trace, 50))
	require.Equal(t, 3, config{ofPeak: true}.nodesFor(trace, 50))
	require.Equal(t, 1, config{ofPeak: true}.nodesFor(trace, 1), "at least one")
}

func TestPredictionsAreMediansOfWhatIsAlike(t *testing.T) {
	t.Parallel()
	p := predictor{recent: map[likeness][]int64{}}
	ended := func(tenant, gpus int, seconds int64) {
		p.observe(job{Job: backtest.Job{Tenant: tenant, GPUs: gpus, Duration: seconds}})
	}
	asked := job{Job: backtest.Job{Tenant: 1, GPUs: 2}, limit: 5000}
	require.Equal(t, 5000*time.Second, p.predict(asked), "nothing has ended: its limit")
	for _, s := range []int64{10, 30, 20} {
		ended(2, 2, s)
	}
	require.Equal(t, 20*time.Second, p.predict(asked), "others of that size")
	for _, s := range []int64{700, 900, 800} {
		ended(1, 2, s)
	}
	require.Equal(t, 800*time.Second, p.predict(asked), "its own tenant's")
	for range remembered {
		ended(1, 2, 9000)
	}
	require.Equal(t, 5000*time.Second, p.predict(asked), "never more than its limit")
}

func TestFiguresArePartsOfMultifactors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printFigures(&out, "x_70", map[string]score{
		"multifactor": {mean: 200, longest: 1000}, "oracle": {mean: 50, longest: 1500},
	})
	require.Contains(t, out.String(), "figure: jobs_x_70_multifactor_wait_s 200 s\n")
	require.Contains(t, out.String(), "figure: jobs_x_70_oracle_of_multifactor 0.250 x\n")
	require.Contains(t, out.String(), "figure: jobs_x_70_oracle_longest_of_multifactor 1.500 x\n")
	require.NotContains(t, out.String(), "multifactor_of_multifactor")
}

func TestAMadeUpTraceIsPlayedToItsEnd(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := config{traces: []string{drawnName}, uses: []int{90}, checkpoint: 10 * time.Minute, seed: 1, most: 60}
	require.NoError(t, runBenchmark(&out, c))
	for _, a := range listArms() {
		require.Contains(t, out.String(), "figure: jobs_drawn_90_"+a.name+"_wait_s ")
	}
}
