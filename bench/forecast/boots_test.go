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
	if got := s.prices(32).Boot; got != 375 {
		t.Errorf("boots are told to take %v s, want 375", got)
	}
	const units = 20_000
	boots, sum := s.drawBoots(), int64(0)
	for range units {
		sum += boots()
	}
	if mean := float64(sum) / units; math.Abs(mean-375) > 3 {
		t.Errorf("boots took %v s in the mean", mean)
	}
}

func TestBootsAreSpreadAsIsSaid(t *testing.T) {
	t.Parallel()
	s := spreadBoots([]float64{50}, "x", "x", backtest.Trace{Tenants: []string{"a"}}, 300)[0]
	if p := s.prices(32); s.name != "x_spread50" || s.isFree() || p.Boot != 300 || p.Late != 150 {
		t.Fatalf("scenario %q, free %v, prices %v", s.name, s.isFree(), p)
	}
	const units = 20_000
	boots, slow, slowest := s.drawBoots(), 0, 0
	for range units {
		boot := boots()
		if boot > 300 {
			slow++
		}
		if boot > 450 {
			slowest++
		}
	}
	if math.Abs(float64(slow)/units-0.5) > 0.02 || math.Abs(float64(slowest)/units-0.05) > 0.005 {
		t.Errorf("of %d boots %d took more than 300 s, and %d more than 450 s", units, slow, slowest)
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
