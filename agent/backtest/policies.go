package backtest

import (
	"context"
	"fmt"
	"math"
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
	setting string  // which of the policy's runs this is, as shown; empty for the only one
	value   float64 // the setting as a number: seconds, a factor, or what waiting is worth
	main    bool    // stands in the table
	weight  int     // how long it takes, roughly, beside a run without a policy

	keep  int64
	make  func(tenant int) core.Policy
	tally *tally
	waits []int64 // by job, for the run that weak spots are looked for in
	out   core.Outcome
}

// keeps are the times that a GPU is kept alive, in minutes, from which the best
// is chosen in hindsight.
var keeps = []int64{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 540, 720, 1440, 2880, 5760}

// factors are shares of last week's demand. The table shows all of it.
var factors = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5}

// worths are multiples of what waiting is worth that Forewarm is run with. The
// table shows what the user said.
var worths = []float64{0.25, 1, 4, 16}

// opening are the hours of the fixed schedule.
func (c Config) opening() core.Hours { return core.Hours{Open: 9, Close: 18, Zone: c.Zone} }

// experiment is all runs over one history.
type experiment struct {
	ctx    context.Context
	past   *past
	cfg    Config
	levels []int // of the fixed schedule, by tenant
	trials []*trial
}

func newExperiment(ctx context.Context, p *past, c Config) *experiment {
	e := &experiment{ctx: ctx, past: p, cfg: c, levels: scheduleLevels(p.trace, c.opening())}
	e.add(&trial{policy: Reactive, main: true, weight: 1})
	_, from, _ := p.trace.Window()
	e.add(&trial{policy: Schedule, main: true, weight: 1, make: func(i int) core.Policy {
		return core.Schedule(from, c.opening(), e.levels[i])
	}})
	for _, minutes := range keeps {
		t := time.Duration(minutes) * time.Minute
		e.add(&trial{policy: KeepAlive, setting: brief(t), value: t.Seconds(), weight: 1, keep: 60 * minutes})
	}
	for _, factor := range factors {
		e.add(&trial{
			policy: LastWeek, setting: fmt.Sprintf("× %g", factor), value: factor, main: factor == 1, weight: 8,
			make: func(int) core.Policy { return core.SeasonalNaive(factor) },
		})
	}
	for _, times := range worths {
		e.addForewarm(times * c.WaitWorth)
	}
	return e
}

func (e *experiment) add(t *trial) { e.trials = append(e.trials, t) }

func (e *experiment) addForewarm(worth float64) {
	t := &trial{
		policy: Forewarm, setting: "worth " + digits(worth), value: worth, main: worth == e.cfg.WaitWorth, weight: 20,
		tally: newTally(),
	}
	if t.main {
		t.waits = make([]int64, len(e.past.trace.Jobs))
	}
	t.make = forewarm(e.past.trace, e.cfg, worth, t.tally)
	e.add(t)
}

// digits writes a number with three digits that count, or all before the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// run makes every trial, one after the other.
func (e *experiment) run() error {
	total, done := 0, 0
	for _, t := range e.trials {
		total += t.weight
	}
	for _, t := range e.trials {
		err := e.try(t, func(share float64) {
			e.cfg.Progress((float64(done) + share*float64(t.weight)) / float64(total))
		})
		if err != nil {
			return err
		}
		done += t.weight
	}
	e.cfg.Progress(1)
	return nil
}

func (e *experiment) try(t *trial, progress func(share float64)) error {
	opt := core.Options{Boot: e.cfg.boot(), KeepAlive: t.keep, Progress: func(done, of int) error {
		progress(float64(done) / float64(of))
		return e.ctx.Err()
	}}
	if t.make != nil {
		opt.Policy = func(i int) core.Policy { return &stoppable{Policy: t.make(i), ctx: e.ctx} }
	}
	if t.waits != nil {
		opt.Waited = func(job int, wait int64) { t.waits[job] = wait }
	}
	var err error
	if t.out, err = core.Run(e.past.trace, opt); err != nil && e.ctx.Err() == nil {
		return fmt.Errorf("replaying %s: %w", t.policy, err)
	}
	return e.ctx.Err()
}

// stoppable asks for nothing more once it is told to stop: between two jobs of a
// quiet year lie half a million questions, and nobody waits for them.
type stoppable struct {
	core.Policy
	ctx   context.Context
	asked int
	ended bool
}

// patience is how many questions are answered between two looks at the context.
const patience = 1024

// Next is the policy's, or never.
func (s *stoppable) Next() int64 {
	if s.ended {
		return math.MaxInt64
	}
	return s.Policy.Next()
}

// Target is the policy's.
func (s *stoppable) Target(now int64) int {
	if s.asked++; s.asked%patience == 0 {
		s.ended = s.ctx.Err() != nil
	}
	return s.Policy.Target(now)
}

// best returns the cheapest trial of a policy at what the user says that waiting
// is worth: the first of several that cost the same.
func (e *experiment) best(policy string) *trial {
	var best *trial
	for _, t := range e.trials {
		if t.policy == policy && (best == nil || t.out.Cost(e.cfg.WaitWorth) < best.out.Cost(e.cfg.WaitWorth)) {
			best = t
		}
	}
	return best
}

// shown returns the trial of a policy that stands in the table. Keep-alive has
// none by itself: its best is shown.
func (e *experiment) shown(policy string) *trial {
	for _, t := range e.trials {
		if t.policy == policy && t.main {
			return t
		}
	}
	return e.best(policy)
}
