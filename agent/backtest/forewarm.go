package backtest

import (
	"math"
	"time"

	core "github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// This file is the one place that knows which forecaster Forewarm has.

// refresh is how often the statistics are asked anew: they speak of hours.
const refresh = 30 * time.Minute

// statistics keeps the GPUs in use, and those that the hour-of-week statistics
// of the tenant find worth keeping.
type statistics struct {
	series *forecast.Series
	costs  forecast.Costs
	tally  *tally
	scored int64 // what is said from this second on is tallied

	demand int
	kept   int
	fresh  int64 // the second of the next refresh
	next   int64

	said  float64 // chance that anything arrives until a second
	until int64   // 0 when nothing is said
	seen  bool
}

// forewarm returns a maker of policies, one for each tenant, that take an hour of
// waiting to be worth so many idle GPU-hours. What they say is counted in tally.
func forewarm(t core.Trace, c Config, worth float64, tally *tally) func(tenant int) core.Policy {
	_, from, _ := t.Window()
	return func(int) core.Policy {
		series, err := forecast.New(forecast.Config{})
		if err != nil { // the defaults are sound
			panic(err)
		}
		return &statistics{
			series: series, tally: tally, scored: from, next: math.MaxInt64,
			costs: forecast.Costs{R: worth, Boot: c.Boot, Horizon: c.Boot + time.Minute},
		}
	}
}

// Submit counts a job.
func (s *statistics) Submit(now int64, j core.Job) {
	_ = s.series.Observe(time.Unix(now, 0), j.GPUs) // jobs come in order, within what a history may hold
	s.demand += j.GPUs
	if s.until > 0 && now <= s.until {
		s.seen = true
	}
	s.next = now
}

// End counts the end of a job.
func (s *statistics) End(now int64, j core.Job, _ int64) {
	s.demand -= j.GPUs
	s.next = now
}

// Next is the next full refresh, or now after a job came or went.
func (s *statistics) Next() int64 { return s.next }

// Target is what is in use and what is worth keeping beside it.
func (s *statistics) Target(now int64) int {
	if now >= s.fresh {
		s.ask(now)
		s.fresh = now - now%int64(refresh/time.Second) + int64(refresh/time.Second)
	}
	s.next = s.fresh
	return s.demand + s.kept
}

func (s *statistics) ask(now int64) {
	if s.until > 0 {
		s.tally.add(s.said, s.seen)
	}
	at := time.Unix(now, 0)
	_ = s.series.Advance(at) // as in Submit
	s.costs.JobGPUs = s.series.JobGPUs()
	f := s.series.At(at, s.costs.Horizon)
	s.kept = forecast.HoldLevels(f, s.costs)
	s.until, s.seen = 0, false
	if now > s.scored {
		s.said, s.until = f.Any(), now+int64(s.costs.Horizon/time.Second)
	}
}
