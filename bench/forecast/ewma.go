package main

import (
	"fmt"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
)

// sigmas are how many standard deviations are added to a mean.
var sigmas = []float64{-1, -0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6}

type ewmaSetting struct {
	halfLife float64 // minutes
	sigmas   float64
}

func ewmaSettings(*scenario) []setting {
	var grid []ewmaSetting
	for _, h := range []float64{30, 120} {
		for _, z := range sigmas {
			grid = append(grid, ewmaSetting{h, z})
		}
	}
	label := func(s ewmaSetting) string { return fmt.Sprintf("%.0f min %+.2f sigma", s.halfLife, s.sigmas) }
	return settingForEach(grid, label, func(s ewmaSetting) backtest.Policy {
		return makePunctual(&ewma{ticker: newTicker(), sigmas: s.sigmas, keep: math.Exp2(-1 / s.halfLife)})
	})
}

// ewma wants the moving mean of the demand and a number of moving standard
// deviations.
type ewma struct {
	ticker
	sigmas, keep   float64
	demand         int
	mean, variance float64
}

// Submit tells of a job.
func (e *ewma) Submit(now int64, j backtest.Job) {
	e.noteEvent(now)
	e.demand += j.GPUs
}

// End tells of its end.
func (e *ewma) End(_ int64, j backtest.Job, _ int64) { e.demand -= j.GPUs }

// Target returns the sum, rounded up.
func (e *ewma) Target(now int64) int {
	e.noteAsked(now)
	d := float64(e.demand) - e.mean
	e.mean += (1 - e.keep) * d
	e.variance = e.keep * (e.variance + (1-e.keep)*d*d)
	return roundUpGPUs(e.mean + e.sigmas*math.Sqrt(e.variance))
}

// roundUpGPUs rounds a demand up to GPUs.
func roundUpGPUs(gpus float64) int { return max(0, int(math.Ceil(gpus-1e-9))) }
