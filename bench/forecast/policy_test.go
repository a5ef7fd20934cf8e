package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// told writes down what a policy hears.
type recordedCalls struct {
	ticker
	calls []int64 // submits as they are, ends as negative numbers
}

func (h *recordedCalls) Submit(now int64, _ backtest.Job) {
	h.noteEvent(now)
	h.calls = append(h.calls, now)
}
func (h *recordedCalls) End(now int64, _ backtest.Job, _ int64) { h.calls = append(h.calls, -now) }
func (h *recordedCalls) Target(now int64) int                   { h.noteAsked(now); return 0 }

func TestPunctualEndsComeAsIfNobodyWaited(t *testing.T) {
	t.Parallel()
	inner := &recordedCalls{ticker: newTicker()}
	p := makePunctual(inner)
	p.Submit(100, backtest.Job{Submit: 100, Duration: 500})
	p.Submit(110, backtest.Job{Submit: 110, Duration: 20})
	p.Submit(130, backtest.Job{Submit: 130, Duration: 700})
	p.End(400, backtest.Job{Submit: 110, Duration: 20}, 380)
	for _, now := range []int64{120, 600, 660} {
		p.Target(now)
	}
	want := []int64{100, 110, -130, 130, -600}
	if len(inner.calls) != len(want) {
		t.Fatalf("called with %v, want %v", inner.calls, want)
	}
	for i := range want {
		if inner.calls[i] != want[i] {
			t.Errorf("called with %v, want %v", inner.calls, want)
		}
	}
	if p.Next() != 720 {
		t.Errorf("next question at %d, want 720", p.Next())
	}
}

func TestNegativeBinomialQuantiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all sums
		for _, g := range rapid.SliceOfN(rapid.IntRange(0, 30), 2, 20).Draw(t, "windows") {
			all.addWindow(float64(g))
		}
		m, _ := matchMoments(all)
		tau := rapid.Float64Range(0.05, 0.995).Draw(t, "tau")
		got := negativeBinomial(tau, all, sums{})
		if all.gpus == 0 {
			if got != 0 {
				t.Fatalf("%d GPUs from nothing", got)
			}
			return
		}
		// The quantile is the smallest number that is not exceeded with probability tau.
		f := forecast.NegativeBinomial(m.mean, m.variance)
		if f.AtLeast(got+1) > 1-tau+1e-6 || (got > 0 && f.AtLeast(got) < 1-tau-1e-6) {
			t.Fatalf("quantile %v is %d, but P(>%d) = %v and P(>=%d) = %v", tau, got, got, f.AtLeast(got+1), got,
				f.AtLeast(got))
		}
	})
}

func TestHourLeansOnTheTenant(t *testing.T) {
	t.Parallel()
	var all, hour sums
	for range 24 {
		all.addWindow(2)
		hour.addWindow(10)
	}
	mean, variance := hour.shrinkTo(all)
	if mean != 6 || variance != 0 {
		t.Errorf("mean %v, variance %v, want half way and none", mean, variance)
	}
}

func TestHybridHistogram(t *testing.T) {
	t.Parallel()
	s := histogramSetting{tail: 0.9, fallback: 10}
	var few, regular, wide gaps
	for range fewGaps - 1 {
		few.addGap(30)
	}
	for range 2 * fewGaps {
		regular.addGap(30)
		wide.addGap(gapBins)
	}
	wide.addGap(1)
	for name, c := range map[string]struct {
		gaps        *gaps
		from, until int64
	}{
		"nothing yet":        {&gaps{}, 0, 600},
		"too few":            {&few, 0, 600},
		"out of range":       {&wide, 0, 600},
		"every half an hour": {&regular, 27*60 - 300, 2046}, // (30 + 1) minutes x 1.1
	} {
		if from, until := c.gaps.warmWindow(s, 300); from != c.from || until != c.until {
			t.Errorf("%s: warm from %d to %d s, want %d to %d", name, from, until, c.from, c.until)
		}
	}
}

// GPUs that are wanted from nine to five are forecast for these hours, to a GPU,
// but for the bins in which the demand jumps.
func TestHoltWintersLearnsADay(t *testing.T) {
	t.Parallel()
	s := &seasonalTrend{ticker: newTicker()}
	start := int64(1_600_041_600) // a midnight
	job := backtest.Job{GPUs: 8}
	s.Submit(start-1, backtest.Job{})
	missed := 0
	for now := start; now < start+200*86400; now += tick {
		switch now % 86400 {
		case 9 * 3600:
			s.Submit(now, job)
		case 17 * 3600:
			s.End(now, job, now-8*3600)
		}
		got := s.Target(now)
		if now-start > 199*86400 && math.Abs(float64(got-s.demand)) > 1 {
			missed++
		}
	}
	if missed > 2*bin/tick {
		t.Errorf("more than a GPU off for %d minutes of the last day", missed)
	}
}
