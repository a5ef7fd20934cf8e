package regimes

import (
	"fmt"
	"math"
)

// drawCron draws jobs that the clock starts: every quarter of an hour, every hour, every night and every week, some
// seconds late, and each as long as it always is. After Jyothi et al., "Morpheus: Towards Automated SLOs for Enterprise
// Clusters" (OSDI 2016): most jobs of such a cluster run periodically.
func drawCron(w *workload) {
	for _, job := range []struct {
		tenant        string
		every, offset float64
		minutes       float64
		gpus          int
	}{
		{"monitoring", 15 * minute, 0, 3, 1}, {"monitoring", hour, 7 * minute, 11, 2},
		{"features", hour, 0, 25, 4}, {"features", day, 2 * hour, 180, 8},
		{"reports", day, 6 * hour, 45, 2}, {"reports", week, 4*day + 20*hour, 400, 16}, {"reports", 30 * minute, 60, 6, 1},
	} {
		w.of(job.tenant)
		w.as("cron", fmt.Sprint(job.every, job.offset))
		for at := job.offset; at < 5*week; at += job.every {
			if !w.chance(0.02) {
				w.submit(at+w.about(8, 2), w.about(job.minutes*minute, 1.12), job.gpus)
			}
		}
	}
}

// drawSweeps draws searches of hyper-parameters: arrays of equal jobs of one GPU, of which the better third is run
// again three times as long. After Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020),
// which halves successively.
func drawSweeps(w *workload) {
	for i, name := range []string{"language", "protein"} {
		w.of(name)
		top := (5 + 4*float64(i)) / day
		w.arrivals(0, 5*week, top, func(at float64) float64 { return top * officeHours(at) }, w.sweep)
	}
}

// sweep draws one search.
func (w *workload) sweep(at float64) {
	w.asOne(6, "sweep")
	trial := w.about(12*minute, 1.8)
	after := 0
	for n := w.oneOf(9, 16, 27, 48); n >= 1; n /= 3 {
		longest, latest := 0.0, 0
		w.asArray()
		for range n {
			runs := w.about(trial, 1.15)
			w.submitAfter(after, at, runs, 1)
			if runs > longest {
				longest, latest = runs, w.last()
			}
		}
		after = latest
		at += longest + w.between(5, 40)
		trial *= 3
	}
}

// drawGangs draws few large trainings that run for days, fail every day or so, and go on from their checkpoint some
// minutes later; between them somebody tries them out on fewer GPUs. After Kokolis et al., "Revisiting Reliability in
// Large-Scale Machine Learning Research Clusters" (HPCA 2025), and Hu et al., "Characterization of Large Language Model
// Development in the Datacenter" (NSDI 2024).
func drawGangs(w *workload) {
	for _, group := range []struct {
		name   string
		gpus   int
		failed float64 // hours between failures
	}{{"base", 192, 14}, {"tuning", 32, 20}, {"small", 8, 30}} {
		w.of(group.name)
		for at := w.between(0, day); at < 8*week; at += w.about(day, 2) {
			w.asOne(3, "train")
			after := 0
			for left := w.about(4*day, 1.7); left > 0; {
				runs := min(left, w.ExpFloat64()*group.failed*hour+2*minute)
				w.submitAfter(after, at, runs, group.gpus)
				w.failIf(runs < left)
				after = w.last()
				left -= runs
				at += runs + w.about(6*minute, 2)
			}
			w.asOne(3, "try")
			for range 2 + w.IntN(8) {
				at += w.about(20*minute, 2.5)
				w.submit(at, w.about(6*minute, 2), group.gpus/4)
			}
		}
	}
}

// drawPoisson draws what nothing can be known of: jobs of one size that arrive independently of each other at a
// constant rate, as in Erlang's models and as Paxson and Floyd, "Wide-Area Traffic: The Failure of Poisson Modeling"
// (SIGCOMM 1994), find of no machine's work.
func drawPoisson(w *workload) {
	for _, group := range []struct {
		name    string
		perHour float64
		minutes float64
		gpus    int
	}{{"busy", 6, 60, 1}, {"rare", 0.5, 30, 1}, {"pairs", 1.5, 90, 2}} {
		w.of(group.name)
		rate := group.perHour / hour
		w.arrivals(0, 4*week, rate, func(float64) float64 { return rate },
			func(at float64) {
				w.asOne(8, "job")
				w.submit(at, w.ExpFloat64()*group.minutes*minute, group.gpus)
			})
	}
}

// drawBursts draws jobs in bursts whose sizes, pauses and run times all have heavy tails. After Barabási, "The origin
// of bursts and heavy tails in human dynamics" (Nature, 2005), and Willinger et al., "Self-similarity through
// high-variability" (IEEE/ACM Transactions on Networking, 1997).
func drawBursts(w *workload) {
	for _, name := range []string{"one", "two", "three"} {
		w.of(name)
		for at := w.between(0, day); at < 6*week; at += w.pareto(20*minute, 0.9, 5*day) {
			gpus := w.oneOf(1, 1, 1, 2, 4)
			w.asOne(4, "burst")
			for n := w.pareto(1, 1.1, 60); n >= 1; n-- {
				w.submit(at, w.pareto(2*minute, 0.9, 2*day), gpus)
				at += w.pareto(2, 0.8, 20*minute)
			}
		}
	}
}

// drawDrift draws work that doubles every month, in its rate and, twice as slowly, in the size of its jobs. Non-
// stationary loads are what workload models leave out: Feitelson, "Workload Modeling for Computer Systems Performance
// Evaluation" (2015), chapter 9.
func drawDrift(w *workload) {
	for i, name := range []string{"rising", "falling"} {
		w.of(name)
		growth := func(at float64) float64 {
			if i == 1 {
				at = 8*week - at
			}
			return math.Exp2(at / (30 * day))
		}
		top := growth(float64(1-i)*8*week) * 12 / day
		w.arrivals(0, 8*week, top, func(at float64) float64 { return officeHours(at) * growth(at) * 12 / day },
			func(at float64) {
				w.asOne(8, "job")
				gpus := max(1, int(math.Sqrt(growth(at))*w.about(1, 1.8)))
				for range 1 + w.IntN(3) {
					w.submit(at, w.about(50*minute, 2.5), gpus)
					at += w.about(3*minute, 2)
				}
			})
	}
}
