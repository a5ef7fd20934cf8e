package backtest_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestJobsWaitForUnitsWhereCapacityIsFull(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{Submit: 0, Duration: 100, GPUs: 2}, {Submit: 1, Duration: 50, GPUs: 1}, {Submit: 2, Duration: 50, GPUs: 2},
	}}
	waits := make([]int64, len(trace.Jobs))
	opt := backtest.Options{Boot: 10, Capacity: 3, Waited: func(job int, wait int64) { waits[job] = wait }}
	if _, err := backtest.Run(trace, opt); err != nil {
		t.Fatal(err)
	}
	// The third one needs the unit of the second, which ends at 61, and one of the first, which ends at 110.
	if want := [3]int64{10, 10, 108}; [3]int64(waits) != want {
		t.Errorf("waits of %v s, want %v", waits, want)
	}
	opt.Capacity = 1
	if _, err := backtest.Run(trace, opt); err == nil {
		t.Error("a job of two GPUs ran on one")
	}
	opt.Capacity = -1
	if _, err := backtest.Run(trace, opt); err == nil {
		t.Error("a negative capacity was taken")
	}
}

func TestCapacityIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		capacity := rapid.IntRange(5, 9).Draw(t, "capacity")
		targets, boot := drawTargets(t), rapid.Int64Range(1, 9).Draw(t, "boot")
		busy := map[int64]int{} // of the first tenant, by second
		policy := func(tenant int) backtest.Policy {
			return &capped{every: every{tenant: tenant, next: 0, targets: targets}, busy: busy, of: tenant}
		}
		started := 0
		_, err := backtest.Run(trace, backtest.Options{Boot: boot, Capacity: capacity, Policy: policy,
			Waited: func(int, int64) { started++ }})
		if err != nil {
			t.Fatal(err)
		}
		if started != len(trace.Jobs) {
			t.Fatalf("%d of %d jobs started", started, len(trace.Jobs))
		}
		for second, gpus := range busy {
			if gpus > capacity {
				t.Fatalf("%d of %d GPUs are busy at %d", gpus, capacity, second)
			}
		}
	})
}

// capped adds up what the jobs of the first tenant had, when they have ended.
type capped struct {
	every
	busy map[int64]int
	of   int
}

func (c *capped) End(now int64, j backtest.Job, started int64) {
	for s := started; s < now && c.of == 0; s++ {
		c.busy[s] += j.GPUs
	}
}

func TestUnitsBootForTimesOfTheirOwn(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{Submit: 0, Duration: 5, GPUs: 1}, {Submit: 100, Duration: 5, GPUs: 2}, {Submit: 200, Duration: 5, GPUs: 1},
	}}
	waits, boots := make([]int64, len(trace.Jobs)), []int64{20, 10, 30, 10}
	_, err := backtest.Run(trace, backtest.Options{Boot: 10, Waited: func(job int, wait int64) { waits[job] = wait },
		BootNext: func() int64 {
			boot := boots[0]
			boots = boots[1:]
			return boot
		}})
	if err != nil {
		t.Fatal(err)
	}
	if want := [3]int64{20, 30, 10}; [3]int64(waits) != want {
		t.Errorf("waits of %v s, want %v", waits, want)
	}
}
