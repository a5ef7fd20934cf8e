package main

import (
	"strings"
	"testing"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestACapacityIsAShareOfTheHighestDemand(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a", "b"}, Jobs: []backtest.Job{
		{Submit: 0, Duration: 60, GPUs: 3}, {Submit: 10, Duration: 60, GPUs: 2, Tenant: 1},
		{Submit: 20, Duration: 60, GPUs: 2, Tenant: 1},
	}}
	for percent, want := range map[float64]int{100: 7, 80: 6, 50: 4, 10: 3} {
		s := limitedPools([]float64{percent}, "x", "x", trace, 300)[0]
		if s.capacity != want {
			t.Errorf("%v %% are %d GPUs, want %d", percent, s.capacity, want)
		}
	}
	s := limitedPools([]float64{50}, "x", "x", trace, 300)[0]
	run := &task{scenario: s}
	if err := run.runTask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if run.out.Longest <= 300 {
		t.Errorf("nobody waited for GPUs: %d s at most", run.out.Longest)
	}
}

func TestCapacitiesArePercents(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"0", "101", "-5", "x", "NaN"} {
		if _, err := parsePercents("capacity", "80,"+list, 100); err == nil || !strings.Contains(err.Error(), list) {
			t.Errorf("%q: %v", list, err)
		}
	}
	if all, err := parsePercents("capacity", "80,99.5", 100); err != nil || len(all) != 2 || all[1] != 99.5 {
		t.Errorf("read as %v, %v", all, err)
	}
}
