package main

import (
	"fmt"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
)

const (
	bin       = 300 // seconds
	binsOfDay = 24 * 3600 / bin
	// The smoothing of level, trend, season and squared error, a bin at a time.
	levelRate, trendRate, seasonRate, errorRate = 0.35, 0.001, 0.1, 0.02
)

func holtWinters(*scenario) []setting {
	label := func(z float64) string { return fmt.Sprintf("%+.2f sigma", z) }
	return settingForEach(sigmas, label, func(z float64) backtest.Policy {
		return makePunctual(&seasonalTrend{ticker: newTicker(), sigmas: z})
	})
}

// seasonalTrend is additive Holt-Winters smoothing of the demand, in bins of five
// minutes with a season of a day. It wants the next bin's forecast and a number
// of standard deviations of its error.
type seasonalTrend struct {
	ticker
	sigmas       float64
	demand       int
	sum          float64 // of the demand at the ticks of this bin
	ticks        int
	level, trend float64
	season       [binsOfDay]float64
	variance     float64
	bins         int
}

// Submit tells of a job.
func (s *seasonalTrend) Submit(now int64, j backtest.Job) {
	s.noteEvent(now)
	s.demand += j.GPUs
}

// End tells of its end.
func (s *seasonalTrend) End(_ int64, j backtest.Job, _ int64) { s.demand -= j.GPUs }

// Target returns the forecast, rounded up.
func (s *seasonalTrend) Target(now int64) int {
	s.noteAsked(now)
	s.sum += float64(s.demand)
	s.ticks++
	if now%bin == 0 {
		s.closeBin(now/bin - 1)
	}
	next := s.level + s.trend + s.season[now/bin%binsOfDay]
	return roundUpGPUs(next + s.sigmas*math.Sqrt(s.variance))
}

// closeBin learns from a bin.
func (s *seasonalTrend) closeBin(n int64) {
	mean := s.sum / float64(s.ticks)
	s.sum, s.ticks = 0, 0
	season := &s.season[n%binsOfDay]
	if s.bins++; s.bins == 1 {
		s.level = mean
		return
	}
	missed := mean - (s.level + s.trend + *season)
	s.variance += errorRate * (missed*missed - s.variance)
	before := s.level
	s.level = levelRate*(mean-*season) + (1-levelRate)*(s.level+s.trend)
	s.trend += trendRate * (s.level - before - s.trend)
	*season += seasonRate * (mean - s.level - *season)
}
