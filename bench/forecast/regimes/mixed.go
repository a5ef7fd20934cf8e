package regimes

// drawMixture draws tenants whose GPUs serve several kinds of work at a time, as those of a department do. After Weng
// et al. (NSDI 2022) and Hu et al. (NSDI 2024), who find training, inference, evaluation and notebooks in one cluster.
func drawMixture(w *workload) {
	w.of("department")
	service{gpus: 1, low: 1, high: 6, noise: 0.15, until: 4 * week}.scale(w)
	w.notebook(0, 4*week)
	w.arrivals(0, 4*week, 3/day, func(at float64) float64 { return 3 / day * officeHours(at) }, w.sweep)
	w.of("startup")
	service{gpus: 2, low: 0, high: 4, noise: 0.3, until: 4 * week, shift: 6 * hour}.scale(w)
	w.as("cron", "training")
	for at := 3 * hour; at < 4*week; at += day {
		w.submit(at+w.about(20, 2), w.about(2*hour, 1.2), 8)
	}
	w.of("lab")
	w.notebook(0, 4*week)
	for at := w.between(0, day); at < 4*week; at += w.about(2*day, 2) {
		w.asOne(3, "train")
		for n := 1 + w.IntN(4); n > 0; n-- {
			w.submit(at, w.about(9*hour, 2), 4)
			at += w.about(9*hour, 2)
		}
	}
}

// drawSplice draws tenants that change what they do at once: two weeks of services, two of sweeps, two of a notebook,
// and the same in another order. The change of the best expert is the subject of Herbster and Warmuth, "Tracking the
// Best Expert" (Machine Learning, 1998).
func drawSplice(w *workload) {
	kinds := []func(from, to float64){
		func(from, to float64) {
			service{gpus: 1, low: 1, high: 10, noise: 0.15, from: from, until: to}.scale(w)
		},
		func(from, to float64) {
			w.arrivals(from, to, 6/day, func(at float64) float64 { return 6 / day * officeHours(at) }, w.sweep)
		},
		func(from, to float64) { w.notebook(from, to) },
	}
	for i, name := range []string{"first", "second"} {
		w.of(name)
		for n := range kinds {
			from := float64(n) * 2 * week
			kinds[(n*(i+1)+i)%len(kinds)](from, from+2*week)
		}
	}
}
