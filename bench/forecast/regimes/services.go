package regimes

import "math"

// drawServices draws inference services that are scaled with their load: pods come and go by the day and the week, and
// in bursts. After Wang et al., "BurstGPT: A Real-world Workload Dataset to Optimize LLM Serving Systems" (2024), whose
// requests have days, weeks and bursts, and after the Horizontal Pod Autoscaler of Kubernetes, which scales out at
// once and scales in after five calm minutes, newest pods first.
func drawServices(w *workload) {
	for i, s := range []service{
		{name: "chat", gpus: 1, low: 3, high: 24, noise: 0.12, until: 5 * week},
		{name: "search", gpus: 1, low: 4, high: 14, noise: 0.06, until: 5 * week},
		{name: "vision", gpus: 2, low: 1, high: 9, noise: 0.25, until: 5 * week},
		{name: "code", gpus: 4, low: 0, high: 5, noise: 0.2, until: 5 * week},
	} {
		w.of(s.name)
		s.shift = float64(i) * 1.5 * hour
		s.scale(w)
	}
}

// service is a number of equal pods that follows a load.
type service struct {
	name        string
	gpus        int
	low, high   float64 // pods at night, and by day
	noise       float64 // of the load, relative
	shift       float64 // of its day
	from, until float64
}

// scaleEvery and calm are the autoscaler's: how often it looks, and how long a load must be lower to scale in, in
// looks.
const (
	scaleEvery = minute
	calm       = 5
)

// scale lets an autoscaler follow the load.
func (s service) scale(w *workload) {
	w.as("deployment", s.name)
	var pods []float64 // when they were started
	var lately [calm]int
	wobble := 0.0
	for i, at := 0, s.from; at < s.until; i, at = i+1, at+scaleEvery {
		wobble = 0.97*wobble + 0.24*w.NormFloat64()*s.noise
		lately[i%calm] = int(math.Round(s.load(at) * math.Exp(wobble)))
		want := lately[i%calm]
		for len(pods) < want {
			pods = append(pods, at+w.between(0, 5))
		}
		for _, n := range lately {
			want = max(want, n)
		}
		for len(pods) > want {
			began := pods[len(pods)-1]
			pods = pods[:len(pods)-1]
			w.submit(began, at-began, s.gpus)
		}
	}
	for _, began := range pods {
		w.submit(began, s.until-began, s.gpus)
	}
}

// load is what the service needs, in pods.
func (s service) load(at float64) float64 {
	sun := 0.5 - 0.5*math.Cos(2*math.Pi*(math.Mod(at+s.shift, day)/day-0.1))
	if math.Mod(at, week) >= 5*day {
		sun *= 0.55
	}
	return s.low + (s.high-s.low)*sun*sun
}

// drawPods draws groups of equal pods that are started at once and ended at once, on working days mostly, again and
// again of the same few sizes. After Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale
// Heterogeneous GPU Clusters" (NSDI 2022): most tasks have many instances that are scheduled as a gang, and most are
// run again.
func drawPods(w *workload) {
	for _, group := range []struct {
		name    string
		pods    []int
		minutes float64 // that they live
		perDay  float64 // times that they are started, at the busiest
	}{
		{"ranking", []int{8, 8, 8, 16}, 50, 30}, {"embedding", []int{4, 6}, 15, 60}, {"training", []int{24, 32}, 240, 8},
	} {
		w.of(group.name)
		top := group.perDay / day
		w.arrivals(0, 4*week, top, func(at float64) float64 { return top * officeHours(at) }, func(at float64) {
			w.asOne(3, "pods")
			w.asArray()
			lives := w.about(group.minutes*minute, 1.6)
			for range w.oneOf(group.pods...) {
				w.submit(at+w.between(0, 3), lives+w.between(0, 4), 1)
			}
		})
	}
}
