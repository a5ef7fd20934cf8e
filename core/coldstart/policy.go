package coldstart

import (
	"math"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// forecaster wants the nodes in use, and those that the statistics find worth
// keeping, as the agent does. A node that it gives up stays up for the cluster's
// suspend time: that begins when the node was kept up last.
type forecaster struct {
	class   *forecast.Tenant
	shadows *forecast.Shadows
	prices  forecast.Prices
	suspend int64
	next    int64
	target  int             // as decided last
	kept    []backtest.Step // decisions that still count, each lower than the one before
	failed  *error          // the first thing that the model refused
}

// Submit counts nodes that are wanted.
func (f *forecaster) Submit(now int64, j backtest.Job) {
	f.noteError(f.class.Submit(now, j.GPUs))
	f.next = now
}

// End counts nodes that are given back.
func (f *forecaster) End(now int64, j backtest.Job, started int64) {
	f.noteError(f.class.End(now, j.GPUs, j.Submit, started))
	f.next = now
}

func (f *forecaster) noteError(err error) {
	if *f.failed == nil {
		*f.failed = err
	}
}

// Next is the second of the next look, or of the end of what is kept.
func (f *forecaster) Next() int64 { return f.next }

// Target looks ahead and decides.
func (f *forecaster) Target(now int64) int {
	outlook := f.class.Observe(now)
	held := max(0, f.lingeringTarget(now)-outlook.Demand)
	f.target = outlook.Demand + f.shadows.Hold(now, &outlook, f.prices, held, forecast.MaxHeld).Levels
	f.noteTarget(now)
	f.next = f.class.Next(now)
	if len(f.kept) > 1 {
		f.next = min(f.next, f.kept[1].At+f.suspend)
	}
	return f.lingeringTarget(now)
}

// lingeringTarget is the highest of the targets that were decided within the
// suspend time: that many nodes are still up.
func (f *forecaster) lingeringTarget(now int64) int {
	for len(f.kept) > 1 && f.kept[1].At+f.suspend <= now {
		f.kept = f.kept[1:]
	}
	if len(f.kept) == 0 {
		return 0
	}
	return f.kept[0].Level
}

// noteTarget adds the newest target to those that still count. Each of them holds
// until the one after it was decided, and lingers from then on; so a higher one
// takes the place of lower ones from when the first of these was decided.
func (f *forecaster) noteTarget(now int64) {
	for n := len(f.kept); n > 0 && f.kept[n-1].Level < f.target; n-- {
		now, f.kept = f.kept[n-1].At, f.kept[:n-1]
	}
	if n := len(f.kept); n == 0 || f.kept[n-1].Level > f.target {
		f.kept = append(f.kept, backtest.Step{At: now, Level: f.target})
	}
}

// newForecasters makes the policies of a fleet, which learn from each other.
func newForecasters(f *fleet, boot int64, worth float64, failed *error) (func(tenant int) backtest.Policy, error) {
	model, experts := forecast.NewOnlineModel(forecast.BuiltIn()), forecast.NewExperts()
	policies := make([]backtest.Policy, len(f.trace.Tenants))
	for i, name := range f.trace.Tenants {
		class, err := model.Tenant(name)
		if err != nil {
			return nil, err
		}
		policies[i] = &forecaster{class: class, shadows: experts.Class(class), suspend: f.suspend, next: math.MaxInt64,
			failed: failed, prices: forecast.Prices{WaitWorth: worth, Boot: float64(boot)}}
	}
	return func(tenant int) backtest.Policy { return policies[tenant] }, nil
}
