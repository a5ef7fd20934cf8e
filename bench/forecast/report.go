package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/backtest"
)

// budgets are the overheads that are compared, in percent of busy GPU-hours.
var budgets = []float64{2, 3, 5, 10, 20}

// runBenchmark runs what c asks for and prints a table for each scenario.
func runBenchmark(ctx context.Context, out io.Writer, c config) error {
	traces, err := readAll(c.traces)
	if err != nil {
		return err
	}
	traces = append(traces, c.drawRegimes()...)
	if c.learn != "" {
		return writePrior(ctx, c.learn, traces)
	}
	scenarios := loadScenarios(c, traces)
	if err := c.teachPriors(ctx, scenarios, traces); err != nil {
		return err
	}
	var tasks []*task
	var reports []*report
	for _, s := range scenarios {
		r := &report{scenario: s}
		reports = append(reports, r)
		tasks = append(tasks, r.planRuns(c)...)
	}
	if err := runTasks(ctx, tasks); err != nil {
		return err
	}
	for _, r := range reports {
		if err := r.printTables(out, c.runs); err != nil {
			return err
		}
		if c.cost && slices.Contains(r.names, "forewarm") && r.scenario.messages == nil {
			if err := r.measureCosts(ctx, out); err != nil {
				return err
			}
		}
	}
	printRegrets(out, reports)
	return nil
}

// report is about one scenario.
type report struct {
	scenario *scenario
	names    []string           // of the families that were run, the first is reactive
	runs     map[string][]*task // by family
}

// planRuns lists the runs of the report.
func (r *report) planRuns(c config) (tasks []*task) {
	r.runs = map[string][]*task{}
	for i, f := range listFamilies() {
		if i > 0 && r.scenario.messages != nil && !f.listens {
			continue
		}
		if i > 0 && !c.wantsFamily(f) {
			continue
		}
		settings := f.settings(r.scenario)
		if len(settings) == 0 {
			continue
		}
		r.names = append(r.names, f.name)
		for _, s := range settings {
			t := &task{scenario: r.scenario, setting: s}
			r.runs[f.name] = append(r.runs[f.name], t)
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func (r *report) reactiveOutcome() backtest.Outcome { return r.runs[r.names[0]][0].out }

// printTables writes the tables and the figures.
func (r *report) printTables(out io.Writer, runs bool) error {
	oracle, err := backtest.Oracle(r.scenario.trace, r.scenario.boot)
	if err != nil {
		return err
	}
	re := r.reactiveOutcome()
	fmt.Fprintf(out, "\n%s, boots of %d s: %d scored jobs, %.0f busy GPU-hours\n", r.scenario.name, r.scenario.boot,
		re.Jobs, re.BusyHours)
	fmt.Fprintf(out,
		"reactive: mean wait %.2f s, %.2f %% without a wait, idle %.3f %%, booting %.3f %%; perfect foresight: "+
			"overhead %.2f %%\n",
		re.Mean, re.ZeroWaitShare(), re.IdleShare(), re.BootShare(), oracle.Overhead())
	if r.scenario.learned != "" {
		fmt.Fprintf(out, "Forewarm's prior: %s\n", r.scenario.learned)
	}
	if runs {
		r.printRuns(out)
	}
	r.printWaits(out)
	if !r.scenario.isFree() {
		r.printCosts(out)
	} else {
		r.printGaps(out, oracle)
	}
	r.printFigures(out, oracle)
	r.printCalibration(out)
	return nil
}

func (r *report) printCalibration(out io.Writer) {
	for _, name := range r.names {
		for _, t := range r.runs[name] {
			if t.setting.calibration != nil {
				t.setting.calibration.writeReport(out, r.figurePrefix())
			}
		}
	}
}

// figurePrefix begins the names of the figures.
func (r *report) figurePrefix() string {
	if r.scenario.boot == 300 {
		return r.scenario.name
	}
	return fmt.Sprintf("%s_boot%d", r.scenario.name, r.scenario.boot)
}

func (r *report) printRuns(out io.Writer) {
	for _, name := range r.names {
		for _, t := range r.runs[name] {
			o := t.out
			fmt.Fprintf(out,
				"run: %-12s %-22s mean %7.2f s, p95 %3d s, zero-wait %6.2f %%, idle %8.3f %%, booting %6.3f %%\n",
				name, t.setting.label, o.Mean, o.P95, o.ZeroWaitShare(), o.IdleShare(), o.BootShare())
			for _, price := range prices {
				fmt.Fprintf(out, "cost: %s, %s, %s, r %g: %.3f idle GPU-hours, %.3f before\n", r.figurePrefix(), name,
					t.setting.label, price, o.Cost(price), t.early.Cost(price))
			}
		}
	}
}

// frontierOf returns what a family reaches.
func (r *report) frontierOf(name string) backtest.Frontier {
	points := []backtest.Point{r.reactiveOutcome().Point()}
	for _, t := range r.runs[name] {
		points = append(points, t.out.Point())
	}
	return backtest.NewFrontier(points)
}

// printWaits writes what each family reaches at each budget.
func (r *report) printWaits(out io.Writer) {
	fmt.Fprintf(out, "mean wait in s (jobs without a wait in %%) at an overhead of\n%-16s", "")
	for _, b := range budgets {
		fmt.Fprintf(out, "%14.0f %%", b)
	}
	fmt.Fprintln(out)
	for _, name := range r.names[1:] {
		f := r.frontierOf(name)
		row := fmt.Sprintf("%-16s", name)
		for _, b := range budgets {
			row += fmt.Sprintf("%16s", formatCell(f, b))
		}
		fmt.Fprintln(out, strings.TrimRight(row, " "))
	}
}

func formatCell(f backtest.Frontier, budget float64) string {
	p, ok := f.At(budget)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f (%.0f)", p.Mean, p.ZeroWait)
}
