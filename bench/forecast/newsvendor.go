package main

import (
	"fmt"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
)

const (
	hoursOfWeek = 7 * 24
	pseudo      = 24 // windows of the tenant's mean that an hour starts with
)

func newsvendorSettings(s *scenario) []setting {
	taus := []float64{0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.975, 0.98, 0.985, 0.99,
		0.9925, 0.995, 0.9975, 0.999, 0.9995}
	label := func(tau float64) string { return fmt.Sprintf("tau %.4g", tau) }
	return settingForEach(taus, label, func(tau float64) backtest.Policy {
		return makePunctual(&newsvendor{ticker: newTicker(), tau: tau, window: s.boot + tick})
	})
}

// sums are the sums over closed windows.
type sums struct{ windows, gpus, squares float64 }

func (s *sums) addWindow(gpus float64) {
	s.windows++
	s.gpus += gpus
	s.squares += gpus * gpus
}

// newsvendor wants, on top of the demand, a quantile of the GPUs that arrive
// within a boot and a tick at this hour of the week.
type newsvendor struct {
	ticker
	tau      float64
	window   int64 // seconds
	demand   int
	arrived  int // in the open window
	began    int64
	hours    [hoursOfWeek]sums
	all      sums
	quantile int
	hour     int64 // that quantile is of
}

// Submit tells of a job.
func (n *newsvendor) Submit(now int64, j backtest.Job) {
	if n.next == math.MaxInt64 {
		n.began = (now + tick - 1) / tick * tick
	}
	n.noteEvent(now)
	n.demand += j.GPUs
	n.arrived += j.GPUs
}

// End tells of its end.
func (n *newsvendor) End(_ int64, j backtest.Job, _ int64) { n.demand -= j.GPUs }

// Target returns demand and quantile.
func (n *newsvendor) Target(now int64) int {
	n.noteAsked(now)
	closed := now >= n.began+n.window
	if closed {
		n.hours[n.began/3600%hoursOfWeek].addWindow(float64(n.arrived))
		n.all.addWindow(float64(n.arrived))
		n.began, n.arrived = now, 0
	}
	if hour := now / 3600 % hoursOfWeek; closed || hour != n.hour {
		n.hour = hour
		n.quantile = negativeBinomial(n.tau, n.all, n.hours[hour])
	}
	return n.demand + n.quantile
}

// negativeBinomial returns the quantile of an hour's windows, of which mean and
// variance are shrunk to those of all hours.
func negativeBinomial(tau float64, all, hour sums) int {
	if all.gpus == 0 {
		return 0
	}
	mean, variance := hour.shrinkTo(all)
	if variance <= mean*(1+1e-9) {
		return smallestQuantile(tau, math.Exp(-mean), func(k float64) float64 { return mean / (k + 1) })
	}
	size, ratio := mean*mean/(variance-mean), (variance-mean)/variance
	none := math.Exp(-size * math.Log1p((variance-mean)/mean))
	return smallestQuantile(tau, none, func(k float64) float64 { return (k + size) / (k + 1) * ratio })
}

// shrinkTo returns mean and variance with pseudo windows of all hours mixed in.
func (s sums) shrinkTo(all sums) (mean, variance float64) {
	own, n := matchMoments(s)
	tenant, _ := matchMoments(all)
	mean = (n*own.mean + pseudo*tenant.mean) / (n + pseudo)
	variance = (n*own.variance + pseudo*tenant.variance) / (n + pseudo)
	return mean, variance
}

type moment struct{ mean, variance float64 }

func matchMoments(s sums) (moment, float64) {
	if s.windows == 0 {
		return moment{}, 0
	}
	mean := s.gpus / s.windows
	return moment{mean, math.Max(0, s.squares/s.windows-mean*mean)}, s.windows
}

// smallestQuantile sums the probabilities from that of zero upwards, each from the one
// before, until they reach tau.
func smallestQuantile(tau, zero float64, ratio func(k float64) float64) int {
	const most = 1 << 12
	sum, p := zero, zero
	k := 0
	for ; sum < tau && k < most; k++ {
		p *= ratio(float64(k))
		sum += p
	}
	return k
}
