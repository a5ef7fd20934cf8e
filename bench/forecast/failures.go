package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/forewarm/forewarm/core/backtest"
)

// mostFailures is the highest share of boots that may fail, in percent: if all did, nothing would ever start.
const mostFailures = 90

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

// drawRetries draws how often boots fail of which this share does, the same in each run.
func drawRetries(share float64) func() int {
	draw := rand.New(rand.NewPCG(17, 0))
	return func() int {
		n := 0
		for draw.Float64() < share {
			n++
		}
		return n
	}
}

// isFree reports whether nobody waits longer than a boot.
func (s *scenario) isFree() bool { return s.capacity == 0 && s.failures == 0 }

// meanBoot is how long a unit boots, with all its tries, in seconds.
func (s *scenario) meanBoot() float64 { return float64(s.boot) / (1 - s.failures) }

// untoldSettings runs Forewarm where it takes boots for as long as those that do not fail.
func untoldSettings(s *scenario) []setting {
	if s.failures == 0 {
		return nil
	}
	untold := *s
	untold.failures = 0
	all := taughtSettings(&untold)
	for i := range all {
		all[i].calibration = nil
	}
	return all
}
