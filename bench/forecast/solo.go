package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// soloSettings are the single experts that Forewarm's choice among experts is compared with, each run alone. They are
// built from the benchmark's own policies, not from the experts in core/forecast.
func soloSettings(s *scenario) []setting {
	if s.messages != nil {
		return nil
	}
	everywhere := map[float64]string{}
	var all []setting
	owns := map[float64]map[float64]string{} // by the worth that is decided at, and then by the price that is paid
	for _, price := range s.pricesOr(prices) {
		everywhere[price] = "nothing"
		for _, m := range ownMultiples {
			if owns[m.times*price] == nil {
				owns[m.times*price] = map[float64]string{}
			}
			owns[m.times*price][price] = m.name
		}
		for _, k := range soloKeeps {
			seconds := int64(float64(s.boot) * (1 + price) / k)
			all = append(all, setting{label: fmt.Sprintf("r %g keep %d s", price, seconds), keepAlive: seconds,
				solo: map[float64]string{price: "keep/" + formatNumber(k)}})
		}
		for _, halfLife := range []float64{30, 120} {
			all = append(all, soloEWMA(s, price, halfLife))
		}
		reference := referenceAt(s, float64(s.boot+tick)/(price*float64(s.boot)), price)
		reference.solo = map[float64]string{price: "reference"}
		all = append(all, reference)
	}
	for _, worth := range sortedKeys(owns) {
		all = append(all, setting{label: fmt.Sprintf("own r %g", worth), solo: owns[worth],
			policies: func() func(int) backtest.Policy {
				fleet, p := forecast.NewOnlineModel(s.prior), forecast.Prices{WaitWorth: worth, Boot: float64(s.boot)}
				return func(tenant int) backtest.Policy { return newForewarned(fleet, s.trace.Tenants[tenant], p) }
			}})
	}
	return append(all, setting{label: "nothing", solo: everywhere})
}

// soloKeeps divide the time for which idling costs as much as a boot and its wait.
var soloKeeps = []float64{1, 3, 9, 27}

// ownMultiples are the worths of waiting that Forewarm's own forecast decides at, as multiples of the price that is
// paid.
var ownMultiples = []struct {
	times float64
	name  string
}{{0.5, "own/2"}, {1, "own"}, {2, "own*2"}, {4, "own*4"}}

// soloEWMA holds the quantile of a normal distribution at which one more GPU is worth its idling.
func soloEWMA(s *scenario, price, halfLife float64) setting {
	z := math.Sqrt2 * math.Erfinv(1-2*min(0.5, 1.2/price))
	return setting{label: fmt.Sprintf("r %g ewma %g", price, halfLife),
		solo: map[float64]string{price: fmt.Sprintf("ewma%g", halfLife)},
		policies: func() func(int) backtest.Policy {
			return func(int) backtest.Policy {
				return makePunctual(&ewma{ticker: newTicker(), sigmas: z, keep: math.Exp2(-1 / halfLife)})
			}
		}}
}

func sortedKeys[V any](m map[float64]V) []float64 {
	var keys []float64
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
