package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

const (
	// mostFailures is the highest share of boots that may fail, in percent: if all did, nothing would ever start.
	mostFailures = 90
	// mostSpread is the largest spread of boots, in percent.
	mostSpread = 1000
)

// failingBoots makes a scenario for each share of boots that fail, in percent. Such a boot takes its time, and is tried
// anew.
func failingBoots(percents []float64, of, name string, t backtest.Trace, boot int64) []*scenario {
	var all []*scenario
	for _, percent := range percents {
		all = append(all, &scenario{name: fmt.Sprintf("%s_failures%s", name, formatNumber(percent)), of: of, trace: t,
			boot: boot, failures: percent / 100})
	}
	return all
}

// spreadBoots makes a scenario for each spread of boot times, in percent: boot is their median, and they are lognormal.
func spreadBoots(percents []float64, of, name string, t backtest.Trace, boot int64) []*scenario {
	var all []*scenario
	for _, percent := range percents {
		all = append(all, &scenario{name: fmt.Sprintf("%s_spread%s", name, formatNumber(percent)), of: of, trace: t,
			boot: boot, spread: percent / 100})
	}
	return all
}

// bootsAlike reports whether each unit boots for as long as every other.
func (s *scenario) bootsAlike() bool { return s.failures == 0 && s.spread == 0 }

// drawBoots draws how long units boot, with the tries that fail, in seconds: the same in each run.
func (s *scenario) drawBoots() func() int64 {
	draw := rand.New(rand.NewPCG(17, 0))
	return func() int64 {
		boot := 0.0
		for again := true; again; again = draw.Float64() < s.failures {
			boot += float64(s.boot) * math.Exp(s.sigma()*draw.NormFloat64())
		}
		return max(1, int64(boot+0.5))
	}
}

// sigma is the standard deviation of the logarithm of boot times, of which the 95th percentile is z above the median.
func (s *scenario) sigma() float64 {
	const z = 1.6448536269514722
	return math.Log(1+s.spread) / z
}

// isFree reports whether nobody waits longer than a boot.
func (s *scenario) isFree() bool { return s.capacity == 0 && s.bootsAlike() }

// prices are those of boots and waiting, as an agent is told of a pool's: the median with all tries, and how much
// longer the 95th percentile takes.
func (s *scenario) prices(worth float64) forecast.Prices {
	boot := float64(s.boot)
	return forecast.Prices{WaitWorth: worth, Boot: boot / (1 - s.failures), Late: s.spread * boot}
}

// untoldSettings runs Forewarm where it takes boots for as long as the median of those that do not fail.
func untoldSettings(s *scenario) []setting {
	if s.bootsAlike() {
		return nil
	}
	untold := *s
	untold.failures, untold.spread = 0, 0
	all := taughtSettings(&untold)
	for i := range all {
		all[i].calibration = nil
	}
	return all
}
