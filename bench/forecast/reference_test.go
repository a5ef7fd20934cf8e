package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

func drawOdds(t *rapid.T) (odds [steps]float64) {
	last := rapid.Float64Range(-8, 4).Draw(t, "first")
	for i := range odds {
		odds[i] = last
		last -= rapid.Float64Range(0, 3).Draw(t, "fall")
	}
	return odds
}

func TestAboveIsTheLastLevelThatIsWorthIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		odds := drawOdds(t)
		q := rapid.Float64Range(0.0001, 1.2).Draw(t, "q")
		n := timeAbove(odds, q)
		if n < 0 || n > grid[steps-1] {
			t.Fatalf("%d levels", n)
		}
		for i, j := range grid {
			chance := 1 / (1 + math.Exp(-odds[i]))
			if j <= n && chance < q-1e-9 || j > n && chance >= q+1e-9 {
				t.Fatalf("%d levels at q = %v, but step %d has %v", n, q, j, chance)
			}
		}
		if more := timeAbove(odds, q*1.5); more > n {
			t.Fatalf("a higher threshold wants %d levels instead of %d", more, n)
		}
	})
}

func TestHeldLevelsStayLonger(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		odds := drawOdds(t)
		p := newPast(0, 360)
		p.demand = rapid.IntRange(0, 50).Draw(t, "demand")
		r := &reference{past: p, theta: rapid.Float64Range(0.0001, 0.6).Draw(t, "theta"),
			target: rapid.IntRange(0, 200).Draw(t, "target")}
		got := r.decideLevel(odds)
		boot, keep := timeAbove(odds, 2*r.theta), timeAbove(odds, r.theta)
		held := max(0, r.target-p.demand)
		if got < boot || got > keep || (got > boot && got > held) {
			t.Fatalf("%d levels: would boot %d, keep %d, holds %d", got, boot, keep, held)
		}
	})
}

// A model that has seen one outcome in four of a situation says so.
func TestHazardLearnsARate(t *testing.T) {
	t.Parallel()
	h := newHazard()
	p := newPast(0, 360)
	for n := range 4000 {
		e := &example{}
		p.hashFeatures(600_000, &e.hashes)
		if n%4 == 0 {
			e.credits[0] = 1
		}
		h.learnExample(e)
	}
	e := &example{}
	p.hashFeatures(600_000, &e.hashes)
	odds := h.predictLogOdds(e)
	if q := 1 / (1 + math.Exp(-odds[0])); math.Abs(q-0.25) > 0.05 {
		t.Errorf("said %v of what happens one time in four", q)
	}
	for i := 1; i < steps; i++ {
		if odds[i] > odds[i-1] {
			t.Errorf("step %d is likelier than step %d", i, i-1)
		}
	}
}

// A credit goes to the first job that lifts the demand to a level, as one over
// its GPUs.
func TestCredits(t *testing.T) {
	t.Parallel()
	r := &reference{ticker: newTicker(), past: newPast(0, 360), model: newHazard(), theta: 0.1}
	r.Submit(600_000, backtest.Job{GPUs: 2})
	r.Target(600_000)
	r.Submit(600_010, backtest.Job{GPUs: 2})
	r.End(600_020, backtest.Job{GPUs: 2}, 0)
	r.Submit(600_030, backtest.Job{GPUs: 8})
	e := r.open[0]
	for i, want := range []float32{0.5, 0.5, 0.125, 0.125, 0.125, 0.125, 0} {
		if e.credits[i] != want {
			t.Errorf("step %d has the credit %v, want %v", grid[i], e.credits[i], want)
		}
	}
	if r.past.demand != 10 {
		t.Errorf("demand %d, want 10", r.past.demand)
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]int{0: 0, 0.001: 1, 1.0 / 64: 1, 1: 13, 1.5: 14, 2: 15, 1024: 33} {
		if got := logBucket(log2(x)); got != want {
			t.Errorf("%v is in bucket %d, want %d", x, got, want)
		}
	}
	for x, want := range map[float64]int{0: 0, 0.6: 0, 1: 1, 3.9: 2, 4: 3} {
		if got := octaveOf(x); got != want {
			t.Errorf("%v is in octave %d, want %d", x, got, want)
		}
	}
}

// A source that is always wrong is soon not worth a GPU, and one that is right is.
func TestTrustIsEarned(t *testing.T) {
	t.Parallel()
	of := func(arrived int) bool {
		r := &trusting{reference: &reference{past: newPast(0, 360)}, source: &trust{}, price: 4}
		for range 30 {
			r.source.countClaim(&claim{Message: Message{Mid: 8}, arrived: arrived})
		}
		r.past.size = 8
		return r.isWorthHolding(&claim{Message: Message{Mid: 8}})
	}
	if of(0) {
		t.Error("a source that was never right is acted on")
	}
	r := &trusting{reference: &reference{past: newPast(0, 360)}, source: &trust{}, price: 4}
	if r.past.size = 8; r.isWorthHolding(&claim{Message: Message{Mid: 8}}) {
		t.Error("an unknown source is worth 8 GPUs for one job")
	}
	r.price = 40
	if !r.isWorthHolding(&claim{Message: Message{Mid: 8}}) {
		t.Error("where waiting is dear an unknown source is not worth a try")
	}
}
