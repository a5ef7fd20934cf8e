package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
)

const gpusPerNode = 8

// job is a job of the trace, with the limit that its owner is imagined to have set.
type job struct {
	backtest.Job
	limit   int64 // seconds
	request placement.Request
}

// workload is the jobs and the cluster that all policies get.
type workload struct {
	jobs    []job
	nodes   []placement.Node
	tenants []string
	dropped int
}

// limits are what people choose from, in hours.
var limits = []int64{1, 4, 12, 24, 48, 168, 720, 2160, 8760}

func newWorkload(t backtest.Trace, nodes int, seed uint64) *workload {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &workload{tenants: t.Tenants}
	for i := range nodes {
		w.nodes = append(w.nodes, placement.Node{ID: nodeName(i), Kind: placement.Kind{GPUs: gpusPerNode}})
	}
	for _, j := range t.Jobs {
		padded := float64(j.Duration) * math.Exp(rng.Float64()*math.Log(20))
		shape, ok := capacity.Layout{}.Shape(j.GPUs, gpusPerNode)
		if !ok || shape.Nodes > nodes {
			w.dropped++
			continue
		}
		w.jobs = append(w.jobs, job{Job: j, limit: chooseLimit(int64(padded)), request: placement.Request{Shape: shape}})
	}
	return w
}

// chooseLimit is the smallest limit that people choose that is long enough.
func chooseLimit(seconds int64) int64 {
	for _, hours := range limits {
		if seconds <= hours*3600 {
			return hours * 3600
		}
	}
	return seconds
}

func nodeName(i int) string {
	const digits = "0123456789"
	return "n" + string([]byte{digits[i/1000%10], digits[i/100%10], digits[i/10%10], digits[i%10]})
}

// nodesFor is how many nodes the jobs use to so many percent, on average over the trace;
// or so many percent of what they would need to start at once.
func (c config) nodesFor(t backtest.Trace, use int) int {
	gpus := meanUse(t) * 100 / float64(use)
	if c.ofPeak {
		gpus = peakUse(t) * float64(use) / 100
	}
	return max(1, int(math.Round(gpus/gpusPerNode)))
}

func meanUse(t backtest.Trace) float64 {
	seconds := 0.0
	for _, j := range t.Jobs {
		seconds += float64(j.Duration) * float64(j.GPUs)
	}
	return seconds / float64(max(1, t.Jobs[len(t.Jobs)-1].Submit-t.Jobs[0].Submit))
}

func peakUse(t backtest.Trace) float64 {
	type step struct {
		at   int64
		gpus int
	}
	var steps []step
	for _, j := range t.Jobs {
		steps = append(steps, step{j.Submit, j.GPUs}, step{j.Submit + j.Duration, -j.GPUs})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.gpus - b.gpus
	})
	now, peak := 0, 0
	for _, s := range steps {
		now += s.gpus
		peak = max(peak, now)
	}
	return float64(peak)
}

// drawnName is the trace that is made up.
const drawnName = "drawn"

// drawTrace makes up a day of bursts of two tenants.
func drawTrace() backtest.Trace {
	rng := rand.New(rand.NewPCG(1, 2))
	t := backtest.Trace{Tenants: []string{"a", "b"}}
	for at := int64(1_600_000_000); at < 1_600_000_000+86_400; at += int64(rng.ExpFloat64() * 900) {
		for range 1 + rng.IntN(8) {
			t.Jobs = append(t.Jobs, backtest.Job{ID: nodeName(len(t.Jobs)), Submit: at,
				Duration: 1 + int64(math.Exp(rng.NormFloat64()+7)), GPUs: 1 << rng.IntN(5), Tenant: rng.IntN(2)})
		}
	}
	return t
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
