package backtest

import (
	"fmt"
	"time"

	core "github.com/forewarm/forewarm/core/backtest"
)

// The policies that are compared, by the names that a Report gives them.
const (
	Happened  = "what_happened" // as the history tells it
	Reactive  = "reactive"      // nothing is kept warm
	Schedule  = "schedule"      // a number of GPUs from 9 to 18 on weekdays
	KeepAlive = "keep_alive"    // a GPU is kept for some time after its job
	LastWeek  = "last_week"     // what was wanted at the same time last week
	Forewarm  = "forewarm"      // statistics, without a model
	Foresight = "foresight"     // what is still possible at best
)

// trial is one run of one policy.
type trial struct {
	policy  string
	setting string // which of the policy's runs this is, as shown; empty for the only one
	main    bool   // stands in the table
	weight  int    // how long it takes, roughly, beside a run without a policy

	keep     int64                        // seconds that a GPU is kept after its job
	policies func(tenant int) core.Policy // nil for none
	waits    []int64                      // by job, for the run that weak spots are looked for in
	out      core.Outcome
}

// keeps are the times that a GPU is kept alive, in minutes, from which the best
// is chosen in hindsight.
var keeps = []int64{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 540, 720, 1440, 2880, 5760}

// factors are shares of last week's demand. The table shows all of it.
var factors = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5}

// worths are multiples of what waiting is worth that Forewarm is run with. The
// table shows what the user said.
var worths = []float64{0.25, 1, 4, 16}

// openingHours are the hours of the fixed schedule.
func (c Config) openingHours() core.Hours { return core.Hours{Open: 9, Close: 18, Zone: c.Zone} }

// experiment is all runs over one history.
type experiment struct {
	past   *past
	cfg    Config
	levels []int // of the fixed schedule, by tenant
	trials []*trial
	plans  *plans // of Forewarm; nil before the run
}

func newExperiment(p *past, c Config) *experiment {
	e := &experiment{past: p, cfg: c, levels: scheduleLevels(p.trace, c.openingHours())}
	e.addTrial(&trial{policy: Reactive, main: true, weight: 1})
	_, from, _ := p.trace.Window()
	e.addTrial(&trial{policy: Schedule, main: true, weight: 1, policies: func(i int) core.Policy {
		return core.Schedule(from, c.openingHours(), e.levels[i])
	}})
	for _, minutes := range keeps {
		t := time.Duration(minutes) * time.Minute
		e.addTrial(&trial{policy: KeepAlive, setting: formatBrief(t), weight: 1, keep: 60 * minutes})
	}
	for _, factor := range factors {
		e.addTrial(&trial{
			policy: LastWeek, setting: fmt.Sprintf("× %g", factor), main: factor == 1, weight: 8,
			policies: func(int) core.Policy { return core.SeasonalNaive(factor) },
		})
	}
	for i := range worths {
		e.addForewarm(i)
	}
	return e
}

func (e *experiment) addTrial(t *trial) { e.trials = append(e.trials, t) }

func (e *experiment) addForewarm(i int) {
	t := &trial{
		policy: Forewarm, setting: "worth " + formatDigits(e.waitingWorths()[i]), main: worths[i] == 1, weight: 1,
		policies: func(tenant int) core.Policy { return e.plans.policyFor(i, tenant) },
	}
	if t.main {
		t.waits = make([]int64, len(e.past.trace.Jobs))
	}
	e.addTrial(t)
}

// waitingWorths are what waiting is worth in Forewarm's runs, in idle GPU-hours an hour.
func (e *experiment) waitingWorths() []float64 {
	all := make([]float64, len(worths))
	for i, times := range worths {
		all[i] = times * e.cfg.WaitWorth
	}
	return all
}

// formatDigits writes a number with three digits that count, or all before the point.
func formatDigits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
