package backtest

import (
	"context"
	"fmt"
	"math"

	core "github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// This file is the one place that knows which forecaster Forewarm has.

// passBoot is the boot time, in seconds, of the run that the model learns from.
// The demand is so read as if nobody waited, and one pass of the model serves
// every worth of waiting. That the ends of jobs come later by their waits
// changed the reference of bench/forecast by under two percent.
const passBoot = 1

// plans are what Forewarm would want at each worth of waiting.
type plans struct {
	worths      []float64
	targets     [][][]core.Step // by worth and tenant: the supply target from a second on
	reliability *reliability    // of what the model said
	failed      error           // the first thing that the model refused
}

// planWithModel lets the model read the history once, and decides at every worth.
func planWithModel(ctx context.Context, t core.Trace, c Config, worths []float64,
	progress func(share float64)) (*plans, error) {
	p := &plans{worths: worths, reliability: newReliability()}
	for range worths {
		p.targets = append(p.targets, make([][]core.Step, len(t.Tenants)))
	}
	watchers, err := p.newWatchers(t, c)
	if err != nil {
		return nil, err
	}
	_, err = core.Run(t, core.Options{
		Boot:   passBoot,
		Policy: func(i int) core.Policy { return &stoppable{Policy: watchers[i], ctx: ctx} },
		Progress: func(done, of int) error {
			progress(float64(done) / float64(of))
			return ctx.Err()
		},
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("reading the history: %w", err)
	case p.failed != nil:
		return nil, fmt.Errorf("learning from the history: %w", p.failed)
	}
	return p, nil
}

// newWatchers makes one watcher for each tenant. They learn from each other.
func (p *plans) newWatchers(t core.Trace, c Config) ([]*watcher, error) {
	fleet := forecast.NewOnlineModel(forecast.BuiltIn())
	experts := make([]*forecast.Experts, len(p.worths))
	for i := range experts {
		experts[i] = forecast.NewExperts()
	}
	_, from, last := t.Window()
	all := make([]*watcher, len(t.Tenants))
	for i, name := range t.Tenants {
		class, err := fleet.Tenant(name)
		if err != nil {
			return nil, fmt.Errorf("learning of %d groups, choose one: %w", len(t.Tenants), err)
		}
		all[i] = &watcher{
			plans: p, tenant: i, class: class, boot: float64(c.bootSeconds()), next: math.MaxInt64,
			targets: make([]int, len(p.worths)), said: statement{from: from, last: last},
		}
		for _, x := range experts {
			all[i].shadows = append(all[i].shadows, x.Class(class))
		}
	}
	return all, nil
}

// policyFor replays what was wanted at one worth of waiting.
func (p *plans) policyFor(worth, tenant int) core.Policy {
	return &replay{steps: p.targets[worth][tenant]}
}

// watcher tells the model what happens to one tenant, and notes what follows.
type watcher struct {
	plans   *plans
	tenant  int
	class   *forecast.Tenant
	boot    float64 // seconds
	next    int64
	shadows []*forecast.Shadows // by worth
	targets []int               // as decided last, by worth
	said    statement
}

// Submit counts a job.
func (w *watcher) Submit(now int64, j core.Job) {
	w.noteError(w.class.SubmitAs(now, j.GPUs, forecast.Traits(j.Traits)))
	w.said.noteDemand(now, w.class.Demand())
	w.next = now
}

// End counts the end of a job.
func (w *watcher) End(now int64, j core.Job, started int64) {
	w.noteError(w.class.EndAs(now, j.GPUs, j.Submit, started, forecast.Traits(j.Traits)))
	w.next = now
}

func (w *watcher) noteError(err error) {
	if w.plans.failed == nil {
		w.plans.failed = err
	}
}

// Next is the second of the next look.
func (w *watcher) Next() int64 { return w.next }

// Target looks ahead and decides at each worth, as if that worth had been decided
// at all along. It wants nothing itself.
func (w *watcher) Target(now int64) int {
	outlook := w.class.Observe(now)
	w.said.noteChance(now, outlook, w.plans.reliability)
	for i, worth := range w.plans.worths {
		held := max(0, w.targets[i]-outlook.Demand)
		prices := forecast.Prices{WaitWorth: worth, Boot: w.boot}
		w.noteTarget(i, now, outlook.Demand+w.shadows[i].Hold(now, &outlook, prices, held, forecast.MaxHeld).Levels)
	}
	w.next = w.class.Next(now)
	return 0
}

// noteTarget notes a target that differs from the one before it.
func (w *watcher) noteTarget(worth int, now int64, target int) {
	if target == w.targets[worth] {
		return
	}
	w.targets[worth] = target
	steps := &w.plans.targets[worth][w.tenant]
	*steps = append(*steps, core.Step{At: now, Level: target})
}

// statement is one thing that was said of one tenant: how likely it is that its
// demand rises within tallied seconds. The next one is made when it has come true
// or not.
type statement struct {
	from, last int64 // only what is said, and comes out, between these seconds counts
	chance     float64
	demand     int
	until      int64 // 0 when nothing is said
	seen       bool
}

// tallied is how far ahead the statements look, in seconds.
const tallied = 600

func (s *statement) noteDemand(now int64, demand int) {
	s.seen = s.seen || now <= s.until && demand > s.demand
}

func (s *statement) noteChance(now int64, o forecast.Outlook, t *reliability) {
	if now < s.until {
		return
	}
	if s.until > 0 {
		t.addStatement(s.chance, s.seen)
	}
	s.until, s.seen = 0, false
	if now > s.from && now+tallied <= s.last {
		s.chance, s.demand, s.until = o.Chance(1, tallied), o.Demand, now+tallied
	}
}

// replay wants what was noted before.
type replay struct {
	steps []core.Step
	done  int
}

// Submit does nothing: it was foreseen, or not.
func (*replay) Submit(int64, core.Job) {}

// End does nothing either.
func (*replay) End(int64, core.Job, int64) {}

// Next is the second of the next step.
func (r *replay) Next() int64 {
	if r.done == len(r.steps) {
		return math.MaxInt64
	}
	return r.steps[r.done].At
}

// Target is the level of the step that is due.
func (r *replay) Target(now int64) int {
	for r.done < len(r.steps) && r.steps[r.done].At <= now {
		r.done++
	}
	return r.steps[r.done-1].Level
}
