package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/forewarm/forewarm/core/backtest"
)

// printGaps writes how much of the cost that foresight would save each family
// saves: at its best setting in hindsight, and at the one that the price of
// waiting alone sets.
func (r *report) printGaps(out io.Writer, oracle backtest.Outcome) {
	fmt.Fprintf(out, "gap to perfect foresight closed, in %%, when an hour of waiting is worth r idle GPU-hours\n%-30s",
		"")
	for _, price := range prices {
		fmt.Fprintf(out, "%8s", "r="+formatNumber(price))
	}
	fmt.Fprintln(out)
	for _, name := range r.names[1:] {
		r.gapRow(out, name, "best in hindsight",
			func(price float64) (float64, bool) { return r.bestGap(name, price, oracle) })
		if r.isPriced(name) {
			r.gapRow(out, name, "by the price",
				func(price float64) (float64, bool) { return r.pricedGap(name, price, oracle) })
		}
	}
}

func (r *report) gapRow(out io.Writer, name, how string, gap func(price float64) (float64, bool)) {
	fmt.Fprintf(out, "%-12s %-17s", name, how)
	for _, price := range prices {
		g, _ := gap(price)
		fmt.Fprintf(out, "%8.0f", g)
	}
	fmt.Fprintln(out)
}

// bestGap is never negative: one may always do nothing.
func (r *report) bestGap(name string, price float64, oracle backtest.Outcome) (float64, bool) {
	best := 0.0
	for _, t := range r.runs[name] {
		best = max(best, backtest.GapClosed(r.reactiveOutcome(), t.out, oracle, price))
	}
	return best, true
}

// isPriced reports whether a family has settings that a price sets.
func (r *report) isPriced(name string) bool {
	_, ok := r.pricedGap(name, prices[0], backtest.Outcome{})
	return ok
}

func (r *report) pricedGap(name string, price float64, oracle backtest.Outcome) (float64, bool) {
	for _, t := range r.runs[name] {
		if t.setting.price == price {
			return backtest.GapClosed(r.reactiveOutcome(), t.out, oracle, price), true
		}
	}
	return 0, false
}

// printFigures writes the figures that other tools read.
func (r *report) printFigures(out io.Writer, oracle backtest.Outcome) {
	prefix := r.figurePrefix()
	fmt.Fprintf(out, "figure: %s_reactive_wait %.1f s\n", prefix, r.reactiveOutcome().Mean)
	fmt.Fprintf(out, "figure: %s_reactive_overhead %.2f %%\n", prefix, r.reactiveOutcome().Overhead())
	for _, name := range r.names[1:] {
		f := r.frontierOf(name)
		for _, b := range budgets {
			if p, ok := f.At(b); ok {
				fmt.Fprintf(out, "figure: %s_%s_wait_at_%s %.1f s\n", prefix, name, formatNumber(b), p.Mean)
			}
		}
		for _, price := range prices {
			if g, ok := r.pricedGap(name, price, oracle); ok && r.scenario.isFree() {
				fmt.Fprintf(out, "figure: %s_gap_closed_r%s %.1f %%\n", gapPrefix(prefix, name), formatNumber(price), g)
			}
		}
	}
}

// gapPrefix leaves Forewarm's own name out of its figures.
func gapPrefix(prefix, family string) string {
	if family == "forewarm" {
		return prefix
	}
	return prefix + "_" + family
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
