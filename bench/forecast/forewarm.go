package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// forewarmFamilies lists Forewarm's own families of policies: with what other traces
// taught, with nothing, and with nothing and without a part of what it sees.
func forewarmFamilies() []family {
	return []family{
		{name: "forewarm", settings: taughtSettings, listens: true},
		{name: "forewarm_members", settings: memberSettings},
		{name: "forewarm_untold", settings: untoldSettings},
		{name: "forewarm_cold", settings: untaughtSettings(worths)},
		{name: "forewarm_cold_no_hour_of_week", settings: untaughtSettings(fewWorths,
			forecast.Without(forecast.HourOfWeek)),
			ablation: true},
		{name: "forewarm_cold_no_hazard", settings: untaughtSettings(fewWorths, forecast.Without(forecast.Hazard)),
			ablation: true},
		{name: "forewarm_cold_no_calibration", settings: untaughtSettings(fewWorths,
			forecast.Without(forecast.Calibration)),
			ablation: true},
	}
}

// What an hour of one waiting job is worth, in idle GPU-hours. The few are enough
// for overheads from 2 to 10 %.
var (
	worths    = []float64{8, 16, 24, 32, 48, 64, 96, 128, 160, 220, 320, 500, 900, 2000, 5000}
	fewWorths = []float64{16, 32, 64, 128, 220}
)

// worthsOr returns the worths that were asked for, or all.
func (s *scenario) worthsOr(all []float64) []float64 {
	if s.worths != nil {
		return s.worths
	}
	return all
}

// pricesOr returns those of the prices that Forewarm is run at.
func (s *scenario) pricesOr(all []float64) []float64 {
	if s.worths == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(p float64) bool { return !slices.Contains(s.worths, p) })
}

// taughtSettings runs Forewarm with the scenario's prior at each worth, which is all that
// is set. The run at the middle one of the prices is checked for calibration.
func taughtSettings(s *scenario) []setting {
	var all []setting
	for _, r := range s.worthsOr(worths) {
		var c *calibration
		if r == prices[1] && s.messages == nil {
			c = newCalibration(s.trace)
		}
		policies := func() func(int) backtest.Policy {
			return newForewarmPolicies(s, forecast.NewOnlineModel(s.prior), r, c)
		}
		if s.messages != nil {
			policies = ingestEvidence(s, r, policies)
		}
		all = append(all, setting{label: fmt.Sprintf("r %g", r), price: r, policies: policies, calibration: c})
	}
	return all
}

// untaughtSettings runs it without a prior.
func untaughtSettings(worths []float64, options ...forecast.Option) func(s *scenario) []setting {
	return func(s *scenario) []setting {
		if s.messages != nil {
			return nil
		}
		var all []setting
		for _, r := range s.worthsOr(worths) {
			all = append(all, setting{label: fmt.Sprintf("r %g", r), price: r,
				policies: func() func(int) backtest.Policy {
					return newForewarmPolicies(s, forecast.NewOnlineModel(forecast.Prior{}, options...), r, nil)
				}})
		}
		return all
	}
}

// newForewarmPolicies makes the policies of tenants that share a fleet. What they say is
// checked unless c is nil.
func newForewarmPolicies(s *scenario, fleet *forecast.OnlineModel, worth float64,
	c *calibration) func(tenant int) backtest.Policy {
	p := s.prices(worth)
	experts := forecast.NewExperts()
	return func(tenant int) backtest.Policy {
		f := newForewarned(fleet, s.trace.Tenants[tenant], p)
		f.shadows = experts.Class(f.tenant)
		if c != nil {
			f.checks = &checks{to: c}
		}
		return f
	}
}

// forewarnedTenant is Forewarm's policy of one tenant. It hears of the ends as
// they were, with the waits that it caused.
type forewarnedTenant struct {
	tenant  *forecast.Tenant
	shadows *forecast.Shadows // nil if the forecast decides alone
	prices  forecast.Prices
	target  int
	next    int64
	checks  *checks // nil if nothing is checked
}

func newForewarned(fleet *forecast.OnlineModel, name string, p forecast.Prices) *forewarnedTenant {
	t, err := fleet.Tenant(name)
	panicOnError(err)
	return &forewarnedTenant{tenant: t, prices: p, next: math.MaxInt64}
}

// Submit tells of a job.
func (f *forewarnedTenant) Submit(now int64, j backtest.Job) {
	panicOnError(f.tenant.SubmitAs(now, j.GPUs, forecast.Traits(j.Traits)))
	f.next = now
	if f.checks != nil {
		f.checks.noteRise(now, f.tenant.Demand())
	}
}

// End tells of its end.
func (f *forewarnedTenant) End(now int64, j backtest.Job, started int64) {
	panicOnError(f.tenant.EndAs(now, j.GPUs, j.Submit, started, forecast.Traits(j.Traits)))
	f.next = now
}

// Next is when looking again may pay.
func (f *forewarnedTenant) Next() int64 { return f.next }

// Target looks and decides.
func (f *forewarnedTenant) Target(now int64) int {
	o := f.tenant.Observe(now)
	held := max(0, f.target-o.Demand)
	if f.shadows != nil {
		f.target = o.Demand + f.shadows.Hold(now, &o, f.prices, held, forecast.MaxHeld).Levels
	} else {
		f.target = o.Demand + o.Hold(f.prices, held).Levels
	}
	f.next = f.tenant.Next(now)
	if f.checks != nil {
		f.checks.noteLook(now, o)
	}
	return f.target
}
