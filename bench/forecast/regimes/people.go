package regimes

import "math"

// drawNotebook draws one person's notebook: sessions on working days, in each a row of short cells with pauses to
// think, and now and then a longer run. After Carver et al., "NotebookOS: A Replicated Notebook Platform for
// Interactive Training with On-Demand GPUs" (2025): cells run for two minutes and are five minutes apart, in the
// median.
func drawNotebook(w *workload) {
	w.of("notebook")
	w.notebook(0, 6*week)
}

// notebook draws sessions between two times.
func (w *workload) notebook(from, to float64) {
	w.as("someone", "cell")
	for d := from; d < to; d += day {
		if math.Mod(d, week) >= 5*day && !w.chance(0.1) || w.chance(0.1) {
			continue
		}
		for at := d + w.about(9.5*hour, 1.08); at < d+18*hour; at += w.about(70*minute, 2) {
			after := 0
			for range 2 + w.IntN(14) {
				runs := w.about(2*minute, 3)
				if w.chance(0.06) {
					runs = w.about(hour, 2)
				}
				w.submitAfter(after, at, runs, 1)
				after = w.last()
				at += runs + w.about(4*minute, 2.5)
			}
		}
	}
}

// drawResubmission draws jobs of which half fail, mostly soon, and are submitted again some minutes later, until they
// work. After Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads" (USENIX ATC
// 2019): errors in code and configuration fail early, and are tried again.
func drawResubmission(w *workload) {
	for i, name := range []string{"speech", "vision", "text"} {
		w.of(name)
		top := (6 + 6*float64(i)) / day
		w.arrivals(0, 5*week, top, func(at float64) float64 { return top * officeHours(at) }, func(at float64) {
			w.asOne(6, "train")
			gpus := w.oneOf(1, 1, 1, 2, 4, 8)
			after := 0
			for w.chance(0.6) {
				fails := w.about(3*minute, 2.5)
				w.submitAfter(after, at, fails, gpus)
				w.failIf(true)
				after = w.last()
				at += fails + w.about(5*minute, 2)
			}
			w.submitAfter(after, at, w.about(3*hour, 3), gpus)
		})
	}
}

// drawDeadline draws two groups whose work grows as a deadline comes nearer, with the reciprocal of the time left, and
// ceases after it. After Alfi, Parisi and Pietronero, "Conference registration: how people react to a deadline"
// (Nature Physics, 2007).
func drawDeadline(w *workload) {
	for _, group := range []struct {
		name      string
		deadlines []float64
	}{{"theory", []float64{17 * day, 45 * day}}, {"robots", []float64{31 * day, 52 * day}}} {
		w.of(group.name)
		const top = 1.2 / (10 * minute)
		rate := func(at float64) float64 {
			for _, end := range group.deadlines {
				if left := end - at; left > 0 {
					return min(top, top*officeHours(at)*(0.04+1.2*day/(left+day)))
				}
			}
			return 0.02 * top
		}
		w.arrivals(0, 8*week, top, rate, func(at float64) {
			w.asOne(10, "run")
			w.submit(at, w.about(40*minute, 4), w.oneOf(1, 1, 2, 4))
		})
	}
}

// drawReturning draws tenants that come for some days, leave for weeks, and come back with other habits. After Zakay
// and Feitelson, "Workload Resampling for Performance Evaluation of Parallel Job Schedulers" (ICPE 2013): most users
// of a cluster are there for some weeks only.
func drawReturning(w *workload) {
	for _, stay := range []struct {
		tenant   string
		from, to float64 // days
		perHour  float64
		gpus     int
		minutes  float64
	}{
		{"guest", 0, 9, 12, 1, 20}, {"guest", 27, 38, 3, 4, 90}, {"guest", 47, 54, 15, 2, 8},
		{"intern", 5, 22, 5, 1, 45}, {"intern", 33, 56, 8, 2, 30},
		{"resident", 0, 56, 2, 1, 120},
	} {
		w.of(stay.tenant)
		top := stay.perHour / hour
		w.arrivals(stay.from*day, stay.to*day, top, func(at float64) float64 { return top * officeHours(at) },
			func(at float64) {
				w.asOne(1, "run")
				w.submit(at, w.about(stay.minutes*minute, 2.5), stay.gpus)
			})
	}
}
