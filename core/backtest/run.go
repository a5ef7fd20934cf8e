package backtest

import (
	"fmt"
	"math"
)

// run is a replay under way.
type run struct {
	trace   Trace
	opt     Options
	fleets  []fleet
	agenda  agenda
	started []int64       // by job
	later   map[int][]int // jobs that come after a job, by its place
	moved   map[int]int64 // when such jobs were submitted
	touched []int
	next    int // the first job that comes at its own time and has not arrived
	told    int // the job with which Progress is called next
	pending int // jobs that have not started: those that arrived, and those that come after others
	first   int64
	from    int64
	last    int64
	out     Outcome
	early   Outcome // of the time before from
}

// progressEvery is how many jobs arrive between two calls of Options.Progress.
const progressEvery = 1000

// Run replays the trace. It fails if the trace or the options cannot be, or with
// the error of Progress.
func Run(t Trace, opt Options) (Outcome, error) {
	if err := t.Validate(); err != nil {
		return Outcome{}, fmt.Errorf("checking the history: %w", err)
	}
	if opt.Boot < 1 || opt.KeepAlive < 0 {
		return Outcome{}, fmt.Errorf("a boot of %d s and a keep-alive of %d s cannot be", opt.Boot, opt.KeepAlive)
	}
	if err := opt.checkCapacity(t); err != nil {
		return Outcome{}, err
	}
	r := &run{trace: t, opt: opt, fleets: make([]fleet, len(t.Tenants)), started: make([]int64, len(t.Jobs))}
	r.first, r.from, r.last = t.Window()
	r.linkJobs()
	if opt.Scored != (Span{}) {
		r.from, r.last = opt.Scored.From, opt.Scored.Last
	}
	for i := range r.fleets {
		r.fleets[i].since = min(r.first, r.from)
		if opt.Policy != nil {
			r.fleets[i].policy = opt.Policy(i)
			r.schedulePolicy(i)
		}
	}
	for r.hasMore() {
		if err := r.playSecond(); err != nil {
			return Outcome{}, err
		}
	}
	for i := range r.fleets {
		r.countUntil(i, r.last)
	}
	r.out.sumScores(t, Span{r.from, r.last})
	if opt.Early != nil {
		r.early.sumScores(t, Span{min(r.first, r.from), r.from})
		*opt.Early = r.early
	}
	return r.out, nil
}

// checkCapacity says which job could never start.
func (o Options) checkCapacity(t Trace) error {
	if o.Capacity < 0 {
		return fmt.Errorf("a capacity of %d GPUs cannot be", o.Capacity)
	}
	for i, j := range t.Jobs {
		if o.Capacity > 0 && j.GPUs > o.Capacity {
			return fmt.Errorf("job %d: %d GPUs, more than the capacity of %d", i, j.GPUs, o.Capacity)
		}
	}
	return nil
}

// linkJobs notes which jobs come after others.
func (r *run) linkJobs() {
	r.later, r.moved = map[int][]int{}, map[int]int64{}
	for i, j := range r.trace.Jobs {
		if j.After > 0 {
			r.later[j.After-1] = append(r.later[j.After-1], i)
			r.pending++
		}
	}
	r.skipLater()
}

// tellProgress calls Options.Progress when it is time.
func (r *run) tellProgress() error {
	if r.opt.Progress == nil || r.next < r.told {
		return nil
	}
	r.told = r.next + progressEvery
	return r.opt.Progress(r.next, len(r.trace.Jobs))
}

// skipLater lets the next arrival be one that comes at its own time.
func (r *run) skipLater() {
	for r.next < len(r.trace.Jobs) && r.trace.Jobs[r.next].After > 0 {
		r.next++
	}
}

// jobAt returns a job as it was submitted.
func (r *run) jobAt(i int) Job {
	j := r.trace.Jobs[i]
	if j.After > 0 {
		j.Submit = r.moved[i]
	}
	return j
}

// hasMore reports whether a job has still to arrive or to start, or something is
// to happen that is scored.
func (r *run) hasMore() bool {
	return r.next < len(r.trace.Jobs) || r.pending > 0 || len(r.agenda) > 0 && r.agenda[0].at <= r.last
}

// playSecond lets everything happen that is due in the next second in which anything
// is.
func (r *run) playSecond() error {
	now := int64(math.MaxInt64)
	if r.next < len(r.trace.Jobs) {
		now = r.trace.Jobs[r.next].Submit
	}
	if len(r.agenda) > 0 {
		now = min(now, r.agenda[0].at)
	}
	for len(r.agenda) > 0 && r.agenda[0].at == now && r.agenda[0].kind < arrival {
		r.applyEvent(r.agenda.pop())
	}
	for _, i := range r.touched {
		r.startPending(now, i)
	}
	for r.next < len(r.trace.Jobs) && r.trace.Jobs[r.next].Submit == now {
		r.admitArrival(now, r.next)
		if err := r.tellProgress(); err != nil {
			return err
		}
		r.next++
		r.skipLater()
	}
	for len(r.agenda) > 0 && r.agenda[0].at == now && r.agenda[0].kind == arrival {
		e := r.agenda.pop()
		r.moved[e.job] = now
		r.admitArrival(now, e.job)
	}
	for len(r.agenda) > 0 && r.agenda[0].at == now {
		r.touchTenant(r.agenda.pop().tenant)
	}
	for _, i := range r.touched {
		r.applyPolicy(now, i)
	}
	r.touched = r.touched[:0]
	return nil
}

func (r *run) touchTenant(i int) {
	if !r.fleets[i].touched {
		r.fleets[i].touched = true
		r.touched = append(r.touched, i)
	}
}

// applyEvent lets a job end or a boot be ready.
func (r *run) applyEvent(e event) {
	r.touchTenant(e.tenant)
	r.countUntil(e.tenant, e.at)
	f := &r.fleets[e.tenant]
	f.addIdle(e.at, e.units)
	if e.kind == bootReady {
		f.boots -= e.units
		return
	}
	f.busy -= e.units
	for _, i := range r.later[e.job] {
		r.agenda.push(event{at: e.at + r.trace.delayOf(i), kind: arrival, tenant: e.tenant, job: i})
	}
	if f.policy != nil {
		f.policy.End(e.at, r.jobAt(e.job), r.started[e.job])
	}
}

func (r *run) admitArrival(now int64, job int) {
	j := r.jobAt(job)
	j.Failed = false // which nobody knows yet
	f := &r.fleets[j.Tenant]
	r.touchTenant(j.Tenant)
	f.pending = append(f.pending, waiting{job, j.GPUs})
	f.need += j.GPUs
	if j.After == 0 {
		r.pending++
	}
	if f.policy != nil {
		f.policy.Submit(now, j)
	}
	r.startPending(now, j.Tenant)
}

// startPending starts the pending jobs that have their GPUs.
func (r *run) startPending(now int64, tenant int) {
	f := &r.fleets[tenant]
	if len(f.pending) == 0 {
		return
	}
	r.countUntil(tenant, now)
	n := f.startJobs()
	for _, w := range f.pending[:n] {
		j := r.jobAt(w.job)
		r.started[w.job] = now
		r.pending--
		r.agenda.push(event{now + j.Duration, jobEnds, tenant, w.job, j.GPUs})
		r.partAt(j.Submit).addWait(now - j.Submit)
		if r.opt.Waited != nil {
			r.opt.Waited(w.job, now-j.Submit)
		}
	}
	f.pending = append(f.pending[:0], f.pending[n:]...)
}

// applyPolicy asks the policy if it is time, and then boots and releases.
func (r *run) applyPolicy(now int64, tenant int) {
	f := &r.fleets[tenant]
	f.touched = false
	if f.policy != nil && f.policy.Next() <= now {
		f.target = f.policy.Target(now)
	}
	r.countUntil(tenant, now)
	boot := f.planBoots(now-r.opt.KeepAlive, r.opt.KeepReady)
	if r.opt.Capacity > 0 {
		boot = min(boot, r.opt.Capacity-f.busy-f.idling-f.boots)
	}
	if boot > 0 {
		f.boots += boot
		r.startBoots(now, tenant, boot)
	}
	r.schedulePolicy(tenant)
	r.setKeepAlive(now, tenant)
}

// startBoots puts on the agenda when units will be ready.
func (r *run) startBoots(now int64, tenant, units int) {
	if r.opt.BootNext == nil {
		r.agenda.push(event{now + r.opt.Boot, bootReady, tenant, 0, units})
		return
	}
	for range units {
		r.agenda.push(event{now + r.opt.BootNext(), bootReady, tenant, 0, 1})
	}
}

// schedulePolicy puts the policy's next question on the agenda.
func (r *run) schedulePolicy(tenant int) {
	f := &r.fleets[tenant]
	if f.policy == nil {
		return
	}
	if at := f.policy.Next(); at != f.asked && at != math.MaxInt64 {
		f.asked = at
		r.agenda.push(event{at: at, kind: look, tenant: tenant})
	}
}

// setKeepAlive sets the keep-alive timer of the oldest idle unit.
func (r *run) setKeepAlive(now int64, tenant int) {
	f := &r.fleets[tenant]
	if r.opt.KeepAlive == 0 || len(f.idle) == 0 {
		return
	}
	if at := f.idle[0].at + r.opt.KeepAlive; at > now && at != f.timer {
		f.timer = at
		r.agenda.push(event{at: at, kind: look, tenant: tenant})
	}
}

// partAt is the part that what happens at a second belongs to.
func (r *run) partAt(second int64) *Outcome {
	if second > r.from {
		return &r.out
	}
	return &r.early
}

// countUntil adds up what idled and booted until now: before the scored window,
// and within it.
func (r *run) countUntil(tenant int, now int64) {
	f := &r.fleets[tenant]
	r.early.countUnits(f, min(now, r.from))
	r.out.countUnits(f, min(now, r.last))
}

// countUnits adds up what idled and booted until a second.
func (o *Outcome) countUnits(f *fleet, until int64) {
	d := until - f.since
	if d <= 0 {
		return
	}
	o.idle += d * int64(f.idling)
	o.boot += d * int64(f.boots)
	f.since = until
}
