package main

import (
	"math"
	"testing"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestBootsFailAsOftenAsIsSaid(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}}
	s := failingBoots([]float64{20}, "x", "x", trace, 300)[0]
	if s.name != "x_failures20" || s.isFree() {
		t.Fatalf("scenario %q, free %v", s.name, s.isFree())
	}
	if got := s.meanBoot(); got != 375 {
		t.Errorf("boots take %v s in the mean, want 375", got)
	}
	const units = 20_000
	retries, sum := drawRetries(s.failures), 0
	for range units {
		sum += retries()
	}
	if mean := 300 * (1 + float64(sum)/units); math.Abs(mean-375) > 3 {
		t.Errorf("boots took %v s in the mean", mean)
	}
}

func TestAJobWaitsForABootThatFails(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{Submit: 0, Duration: 60, GPUs: 20}, {Submit: 5000, Duration: 60, GPUs: 20}, {Submit: 9000, Duration: 60, GPUs: 20},
	}}
	run := &task{scenario: failingBoots([]float64{50}, "x", "x", trace, 300)[0]}
	if err := run.runTask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if run.out.Longest < 600 {
		t.Errorf("a job waited %d s at most", run.out.Longest)
	}
}
