package backtest

import core "github.com/forewarm/forewarm/core/backtest"

// Point is one run of one policy.
type Point struct {
	Policy   string  `json:"policy"`
	Setting  string  `json:"setting"`
	Overhead float64 `json:"overhead_percent"`
	Mean     float64 `json:"mean_wait_seconds"`
	ZeroWait float64 `json:"zero_wait_percent"`
	Chosen   bool    `json:"in_table"`
}

// Budget is what a policy reaches at equal overhead, between its runs.
type Budget struct {
	Policy string     `json:"policy"`
	At     []BudgetAt `json:"at"`
}

// BudgetAt is the mean wait at an overhead; null below what booting alone takes.
type BudgetAt struct {
	Overhead float64  `json:"overhead_percent"`
	Mean     *float64 `json:"mean_wait_seconds"`
}

// families are the policies that have more than one run.
var families = []string{KeepAlive, LastWeek, Forewarm}

// frontierPoints lists the runs of every policy that has more than one.
func (e *experiment) frontierPoints() []Point {
	points := []Point{}
	for _, policy := range families {
		for _, t := range e.trials {
			if t.policy == policy {
				points = append(points, Point{
					Policy: policy, Setting: t.setting, Overhead: roundFigure(t.out.Overhead()),
					Mean:     roundFigure(t.out.Mean),
					ZeroWait: roundFigure(t.out.ZeroWaitShare()), Chosen: t == e.shownTrial(policy),
				})
			}
		}
	}
	return points
}

// budgetRows compares the families at the same overheads. Keeping nothing belongs to
// each of them.
func (e *experiment) budgetRows() []Budget {
	all := []Budget{}
	for _, policy := range families {
		points := []core.Point{e.shownTrial(Reactive).out.Point()}
		for _, t := range e.trials {
			if t.policy == policy {
				points = append(points, t.out.Point())
			}
		}
		frontier := core.NewFrontier(points)
		b := Budget{Policy: policy}
		for _, overhead := range []float64{2, 5, 10, 20} {
			at := BudgetAt{Overhead: overhead}
			if p, ok := frontier.At(overhead); ok {
				at.Mean = roundedOrNil(p.Mean)
			}
			b.At = append(b.At, at)
		}
		all = append(all, b)
	}
	return all
}
