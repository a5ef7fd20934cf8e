package main

import (
	"fmt"
	"io"
	"slices"
)

// soloNames are the experts of the table, in its order.
var soloNames = []string{"nothing", "keep/27", "keep/9", "keep/3", "keep/1", "ewma30", "ewma120", "reference", "own/2",
	"own", "own*2", "own*4"}

// costs are what single experts and Forewarm cost at a price, in idle GPU-hours, in the first 30 % and in what is
// scored.
type costs struct {
	solo, early       map[string]float64
	ours, oursEarly   float64
	reactive, atFirst float64
}

// costsAt collects what was run at a price; it reports false if Forewarm or the experts were not.
func (r *report) costsAt(price float64) (costs, bool) {
	c := costs{solo: map[string]float64{}, early: map[string]float64{}}
	for _, t := range r.runs["solo"] {
		if name, ok := t.setting.solo[price]; ok {
			c.solo[name], c.early[name] = t.out.Cost(price), t.early.Cost(price)
		}
	}
	i := slices.IndexFunc(r.runs["forewarm"], func(t *task) bool { return t.setting.price == price })
	if i < 0 || len(c.solo) == 0 {
		return c, false
	}
	ours := r.runs["forewarm"][i]
	c.ours, c.oursEarly = ours.out.Cost(price), ours.early.Cost(price)
	c.reactive, c.atFirst = c.solo["nothing"], c.early["nothing"]
	return c, true
}

// regret is by how much a cost lies above the lowest of the experts', in percent.
func regret(ours float64, solo map[string]float64) float64 {
	least, first := 0.0, true
	for _, c := range solo {
		if first || c < least {
			least, first = c, false
		}
	}
	return 100 * (ours/least - 1)
}

// printRegrets writes a table of traces by experts for each price, and the figures. A cell is a cost in percent of
// doing nothing.
func printRegrets(out io.Writer, reports []*report) {
	for _, price := range prices {
		var rows []*report
		for _, r := range reports {
			if _, ok := r.costsAt(price); ok {
				rows = append(rows, r)
			}
		}
		if len(rows) > 0 {
			printRegretTable(out, rows, price)
		}
	}
}

func printRegretTable(out io.Writer, reports []*report, price float64) {
	fmt.Fprintf(out, "\ncost at r = %s, in %% of doing nothing; regret against the best single expert in hindsight\n%-15s",
		formatNumber(price), "")
	for _, name := range soloNames[1:] {
		fmt.Fprintf(out, "%10s", name)
	}
	fmt.Fprintf(out, "%10s%9s%9s\n", "forewarm", "regret", "early")
	sum, worst := 0.0, 0.0
	for _, r := range reports {
		c, _ := r.costsAt(price)
		fmt.Fprintf(out, "%-15s", r.figurePrefix())
		for _, name := range soloNames[1:] {
			fmt.Fprintf(out, "%10.1f", 100*c.solo[name]/c.reactive)
		}
		late, early := regret(c.ours, c.solo), regret(c.oursEarly, c.early)
		fmt.Fprintf(out, "%10.1f%+8.1f%%%+8.1f%%\n", 100*c.ours/c.reactive, late, early)
		sum, worst = sum+late, max(worst, late)
	}
	fmt.Fprintf(out, "mean regret %+.2f %%, worst %+.2f %%\n", sum/float64(len(reports)), worst)
	for _, r := range reports {
		c, _ := r.costsAt(price)
		fmt.Fprintf(out, "figure: %s_regret_r%s %.2f %%\n", r.figurePrefix(), formatNumber(price), regret(c.ours, c.solo))
		fmt.Fprintf(out, "figure: %s_regret_early_r%s %.2f %%\n", r.figurePrefix(), formatNumber(price),
			regret(c.oursEarly, c.early))
	}
}
