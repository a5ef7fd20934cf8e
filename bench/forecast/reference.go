package main

import (
	"fmt"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
)

// referenceSettings run the reference method: a hazard model of levels of concurrency,
// learnt while it runs, and a threshold on what a level is worth. At boots of 300
// s and without messages it sees its own waits; otherwise it reads the demand as
// if nobody waited, as the published figures do.
func referenceSettings(s *scenario) []setting {
	window := s.boot + tick
	var all []setting
	for _, theta := range []float64{0.0006, 0.0011, 0.0019, 0.003, 0.0045, 0.0065, 0.014, 0.021, 0.06, 0.1} {
		all = append(all, referenceAt(s, theta, 0))
	}
	for _, price := range prices {
		all = append(all, referenceAt(s, float64(window)/(price*float64(s.boot)), price))
	}
	return all
}

func referenceAt(s *scenario, theta, price float64) setting {
	return setting{label: fmt.Sprintf("theta %.4g", theta), price: price, policies: func() func(int) backtest.Policy {
		m, source := newHazard(), &trust{}
		return func(tenant int) backtest.Policy {
			r := &reference{ticker: newTicker(), past: newPast(tenant, s.boot+tick), model: m, theta: theta}
			switch {
			case s.messages != nil:
				worth := float64(r.past.window) / (theta * float64(s.boot))
				return makePunctual(&trusting{reference: r, source: source, price: worth,
					messages: s.messagesTo(tenant)})
			case s.boot == 300:
				return r
			}
			return makePunctual(r)
		}
	}}
}

// reference is the reference policy of one tenant.
type reference struct {
	ticker
	past   *past
	model  *hazard
	theta  float64
	target int
	open   []*example // whose windows have not closed, oldest first
	unused []*example
}

// example is one prediction for every step, waiting for what comes true.
type example struct {
	closes  int64
	demand  int
	hit     int // steps that have come true
	hashes  [steps][features]uint32
	credits [steps]float32
}

// Submit tells of a job.
func (r *reference) Submit(now int64, j backtest.Job) {
	r.noteEvent(now)
	r.past.countArrival(now, j.GPUs)
	for _, e := range r.open {
		for e.hit < steps && e.demand+grid[e.hit] <= r.past.demand {
			e.credits[e.hit] = 1 / float32(j.GPUs)
			e.hit++
		}
	}
}

// End tells of its end.
func (r *reference) End(now int64, j backtest.Job, _ int64) { r.past.countEnd(now, j.GPUs) }

// Target learns from the window that closes, predicts and decides.
func (r *reference) Target(now int64) int {
	r.noteAsked(now)
	for len(r.open) > 0 && r.open[0].closes <= now {
		r.model.learnExample(r.open[0])
		r.unused = append(r.unused, r.open[0])
		r.open = append(r.open[:0], r.open[1:]...)
	}
	e := r.newExample()
	*e = example{closes: now + r.past.window, demand: r.past.demand, hashes: e.hashes}
	r.past.hashFeatures(now, &e.hashes)
	r.open = append(r.open, e)
	r.target = r.past.demand + r.decideLevel(r.model.predictLogOdds(e))
	return r.target
}

func (r *reference) newExample() *example {
	if n := len(r.unused); n > 0 {
		e := r.unused[n-1]
		r.unused = r.unused[:n-1]
		return e
	}
	return &example{}
}

// decideLevel returns how many levels above the demand to have: those that are held
// stay as long as they are worth theta, and others boot at twice that.
func (r *reference) decideLevel(odds [steps]float64) int {
	held := max(0, r.target-r.past.demand)
	keep, boot := timeAbove(odds, r.theta), timeAbove(odds, 2*r.theta)
	return max(boot, min(keep, held))
}

// timeAbove returns the highest level of which the chance is q or more. Log-odds are
// straight lines between the steps.
func timeAbove(odds [steps]float64, q float64) int {
	if q >= 1 {
		return 0
	}
	want := math.Log(q / (1 - q))
	n := 0
	for n < steps && odds[n] >= want {
		n++
	}
	if n == 0 || n == steps {
		return grid[max(0, n-1)] * min(n, 1)
	}
	share := (odds[n-1] - want) / (odds[n-1] - odds[n])
	return grid[n-1] + int(share*float64(grid[n]-grid[n-1]))
}
