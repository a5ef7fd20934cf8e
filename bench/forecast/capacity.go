package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/backtest"
)

// parsePercents reads what a flag says, above 0 and at most so many percent.
func parsePercents(flag, list string, most float64) ([]float64, error) {
	var all []float64
	for _, c := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		x, err := strconv.ParseFloat(c, 64)
		if err != nil || !(x > 0 && x <= most) {
			return nil, usageError(fmt.Sprintf("a -%s of %q cannot be: want up to %g percent", flag, c, most))
		}
		all = append(all, x)
	}
	return all, nil
}

// limitedPools makes a scenario for each capacity, in which all tenants share that many percent of what they would
// have at their busiest if nobody waited, and at least what the largest job needs. Jobs then wait for GPUs, too.
func limitedPools(percents []float64, of, name string, t backtest.Trace, boot int64) []*scenario {
	var all []*scenario
	for _, percent := range percents {
		pooled := poolTenants(t)
		most := float64(backtest.Peak(pooled.Demand()[0])) * percent / 100
		capacity := int(math.Ceil(most))
		for _, j := range pooled.Jobs {
			capacity = max(capacity, j.GPUs)
		}
		all = append(all, &scenario{name: fmt.Sprintf("%s_capacity%s", name, formatNumber(percent)), of: of, trace: pooled,
			boot: boot, members: t.Tenants, capacity: capacity})
	}
	return all
}

// printCosts writes what each family that a price sets costs beside doing nothing, where there is no foresight to
// compare with: with too few GPUs, or boots that fail, people wait with it, too.
func (r *report) printCosts(out io.Writer) {
	re := r.reactiveOutcome()
	if r.scenario.capacity > 0 {
		fmt.Fprintf(out, "at most %d GPUs\n", r.scenario.capacity)
	}
	for _, name := range r.names[1:] {
		for _, t := range r.runs[name] {
			if !slices.Contains(prices, t.setting.price) {
				continue
			}
			price := formatNumber(t.setting.price)
			fmt.Fprintf(out, "figure: %s_%s_wait_r%s %.1f s\n", r.figurePrefix(), name, price, t.out.Mean)
			fmt.Fprintf(out, "figure: %s_%s_cost_r%s %.1f %%\n", r.figurePrefix(), name, price,
				100*t.out.Cost(t.setting.price)/re.Cost(t.setting.price))
		}
	}
}
