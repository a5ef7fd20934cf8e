package main

import (
	"fmt"

	"github.com/forewarm/forewarm/core/backtest"
)

// keepAlives keep what a job leaves for a while. The times, in minutes, go on to
// four days.
func keepAlives(*scenario) []setting {
	var all []setting
	for _, m := range []int64{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 540, 720, 1440, 2880, 5760} {
		all = append(all, setting{label: fmt.Sprintf("%d min", m), keepAlive: 60 * m})
	}
	return all
}

// alwaysOn holds the peak of the whole trace, in hindsight.
func alwaysOn(s *scenario) []setting {
	demand := s.trace.Demand()
	first, _, _ := s.trace.Window()
	return []setting{{label: "peak", policies: func() func(int) backtest.Policy {
		return func(tenant int) backtest.Policy { return backtest.AlwaysOn(first, backtest.Peak(demand[tenant])) }
	}}}
}

func seasonalSettings(*scenario) []setting {
	label := func(factor float64) string { return fmt.Sprintf("x %.2f", factor) }
	return settingForEach([]float64{0.25, 0.5, 0.75, 1, 1.25, 1.5}, label, func(factor float64) backtest.Policy {
		return makePunctual(backtest.SeasonalNaive(factor))
	})
}
