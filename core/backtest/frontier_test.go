package backtest_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestFrontierInterpolates(t *testing.T) {
	t.Parallel()
	f := backtest.NewFrontier([]backtest.Point{
		{Overhead: 4, Mean: 100, ZeroWait: 40}, {Overhead: 1, Mean: 200, ZeroWait: 0},
		{Overhead: 3, Mean: 210, ZeroWait: 5}, // worse than reactive
		{Overhead: 2, Mean: 200, ZeroWait: 9}, // no better than reactive
		{Overhead: 8, Mean: 50, ZeroWait: 80},
	})
	for _, c := range []struct {
		at, mean, zero float64
		ok             bool
	}{
		{0.9, 0, 0, false}, {1, 200, 0, true}, {2.5, 150, 20, true}, {4, 100, 40, true},
		{6, 75, 60, true}, {8, 50, 80, true}, {30, 50, 80, true},
	} {
		p, ok := f.At(c.at)
		if ok != c.ok || p.Overhead != c.at || math.Abs(p.Mean-c.mean) > 1e-9 || math.Abs(p.ZeroWait-c.zero) > 1e-9 {
			t.Errorf("at %v %%: %+v, %v; want %v s, %v %%, %v", c.at, p, ok, c.mean, c.zero, c.ok)
		}
	}
	if _, ok := backtest.NewFrontier(nil).At(5); ok {
		t.Error("an empty family reaches something")
	}
}

func TestFrontierNeverRises(t *testing.T) {
	t.Parallel()
	number := rapid.Float64Range(0, 50)
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOf(rapid.Custom(func(t *rapid.T) backtest.Point {
			return backtest.Point{Overhead: number.Draw(t, "overhead"), Mean: number.Draw(t, "mean")}
		})).Draw(t, "points")
		f := backtest.NewFrontier(points)
		for _, p := range points {
			if got, ok := f.At(p.Overhead); !ok || got.Mean > p.Mean {
				t.Fatalf("%+v beats the frontier, which has %+v, %v", p, got, ok)
			}
		}
		last := math.Inf(1)
		for x := 0.0; x < 60; x += 0.5 {
			if p, ok := f.At(x); ok {
				if p.Mean > last {
					t.Fatalf("the wait rises to %v at %v %%", p.Mean, x)
				}
				last = p.Mean
			}
		}
	})
}
