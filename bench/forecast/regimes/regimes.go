// Package regimes draws synthetic job histories: kinds of GPU work that the public traces have little of, so that a
// forecaster tuned to those shows where it does harm. Each is written after what the literature says of such work,
// which its comment names, and is fixed by its name and a seed: the same two have the same jobs everywhere. Times are
// those of four to eight weeks from Monday, 1 January 2024, 00:00 UTC.
package regimes

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
)

// Regime is a kind of work.
type Regime struct {
	Name string
	draw func(w *workload)
}

// All returns every regime, in the order of the tables.
func All() []Regime {
	return []Regime{
		{"services", drawServices}, {"pods", drawPods}, {"cron", drawCron}, {"notebook", drawNotebook},
		{"sweeps", drawSweeps}, {"gangs", drawGangs}, {"resubmission", drawResubmission}, {"deadline", drawDeadline},
		{"returning", drawReturning}, {"poisson", drawPoisson}, {"bursts", drawBursts}, {"drift", drawDrift},
		{"mixture", drawMixture}, {"splice", drawSplice},
	}
}

// Seed is the seed of the tables. What was chosen on it is to be judged on others.
const Seed = 17

// Trace draws the regime's history of a seed. It is the caller's.
func (r Regime) Trace(seed uint64) backtest.Trace {
	w := newWorkload(r.Name, seed)
	r.draw(w)
	return w.trace()
}

// begin is the first second of every regime: a Monday.
const begin = 1_704_067_200

// Lengths of time, in seconds.
const (
	minute = 60.0
	hour   = 3600.0
	day    = 24 * hour
	week   = 7 * day
)

// workload is a history that is being drawn. Times are seconds since begin.
type workload struct {
	*rand.Rand
	tenants []string
	tenant  int // whose jobs are drawn
	jobs    []backtest.Job
	names   *rand.Rand // draws who runs jobs: of its own, so that it changes no time
	traits  backtest.Traits
	arrays  uint32 // so far
}

func newWorkload(name string, seed uint64) *workload {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // which never fails
	return &workload{Rand: rand.New(rand.NewPCG(seed, h.Sum64())), names: rand.New(rand.NewPCG(h.Sum64(), seed))}
}

// of goes on with another tenant.
func (w *workload) of(tenant string) {
	if w.tenant = slices.Index(w.tenants, tenant); w.tenant < 0 {
		w.tenant = len(w.tenants)
		w.tenants = append(w.tenants, tenant)
	}
	w.as(tenant, "job")
}

// as goes on with jobs of a user and a name.
func (w *workload) as(user, name string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(w.tenants[w.tenant] + "/" + user + "/" + name)) // which never fails
	w.traits = backtest.Traits{Class: max(1, h.Sum32())}
}

// asOne goes on with jobs of one of so many users, and of one of the few names that each of them uses.
func (w *workload) asOne(users int, name string) {
	w.as(fmt.Sprint("user", w.names.IntN(users)), fmt.Sprint(name, w.names.IntN(namesEach)))
}

// namesEach is how many names a user uses for one kind of work.
const namesEach = 3

// asArray goes on with jobs that are submitted as one.
func (w *workload) asArray() {
	w.arrays++
	w.traits.Array = w.arrays
}

// last is the number of the job that was added last, from 1 on, for others to come after.
func (w *workload) last() int { return len(w.jobs) }

// submitAfter adds a job that is a reaction to the end of another one, unless that is 0.
func (w *workload) submitAfter(after int, at, seconds float64, gpus int) {
	w.submit(at, seconds, gpus)
	j := &w.jobs[len(w.jobs)-1]
	if j.After = after; after > 0 { // which cutting to whole seconds may put a second later
		j.Submit = max(j.Submit, w.jobs[after-1].Submit+w.jobs[after-1].Duration)
	}
}

// failIf lets the job that was added last fail.
func (w *workload) failIf(failed bool) { w.jobs[len(w.jobs)-1].Failed = failed }

// submit adds a job that runs for so many seconds.
func (w *workload) submit(at, seconds float64, gpus int) {
	w.jobs = append(w.jobs, backtest.Job{
		Submit: begin + int64(max(0, at)), Duration: int64(max(1, seconds)), GPUs: gpus, Tenant: w.tenant,
		Traits: w.traits,
	})
}

// trace returns the jobs in the order of time.
func (w *workload) trace() backtest.Trace {
	order := make([]int, len(w.jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.jobs[a].Submit, w.jobs[b].Submit), cmp.Compare(w.jobs[a].Tenant, w.jobs[b].Tenant))
	})
	place := make([]int, len(w.jobs)+1) // from 1 on, by the one before it was sorted
	for i, from := range order {
		place[from+1] = i + 1
	}
	jobs := make([]backtest.Job, len(w.jobs))
	for i, from := range order {
		jobs[i] = w.jobs[from]
		jobs[i].ID, jobs[i].After = fmt.Sprintf("job%06d", i+1), place[jobs[i].After]
	}
	return backtest.Trace{Tenants: w.tenants, Jobs: jobs}
}

// about draws from a log-normal distribution with a median; two thirds of the numbers lie within a factor.
func (w *workload) about(median, factor float64) float64 {
	return median * math.Exp(math.Log(factor)*w.NormFloat64())
}

// pareto draws from a Pareto distribution that begins at least, and is cut at most.
func (w *workload) pareto(least, shape, most float64) float64 {
	return min(most, least*math.Pow(1-w.Float64(), -1/shape))
}

// between draws evenly.
func (w *workload) between(low, high float64) float64 { return low + (high-low)*w.Float64() }

// chance is true with a probability.
func (w *workload) chance(p float64) bool { return w.Float64() < p }

// oneOf draws one of some numbers of GPUs.
func (w *workload) oneOf(gpus ...int) int { return gpus[w.IntN(len(gpus))] }

// arrivals calls with the times of a Poisson process with a rate per second that changes, and is never above top
// (thinning: Lewis and Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", 1979).
func (w *workload) arrivals(from, to, top float64, rate func(at float64) float64, with func(at float64)) {
	for at := from + w.ExpFloat64()/top; at < to; at += w.ExpFloat64() / top {
		if w.chance(rate(at) / top) {
			with(at)
		}
	}
}

// officeHours is how busy people are at a time, from 0 to 1: on working days from nine to seven, most in the
// afternoon, with a dip at noon, and a little at other times.
func officeHours(at float64) float64 {
	h, weekday := math.Mod(at, day)/hour, math.Mod(at, week) < 5*day
	switch {
	case !weekday || h < 9 || h >= 19:
		return 0.06
	case h >= 12 && h < 13:
		return 0.5
	default:
		return 0.6 + 0.4*math.Sin((h-9)/10*math.Pi)
	}
}
