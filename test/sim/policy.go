package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// foresee is the forecaster and the rule of the agents as a policy of the
// benchmark: the same calls, with no system in between. Each tenant has a
// forecaster of its own, since an agent knows one customer.
type foresee struct {
	class   *forecast.Tenant
	shadows *forecast.Shadows
	prices  forecast.Prices
	began   map[string]int64 // when the jobs were submitted that ran at the beginning
	from    int64
	next    int64
	target  int
	err     error
}

// newPolicies makes a policy for every tenant, taught what was before.
func (t Trace) newPolicies(opt Options) ([]*foresee, error) {
	began := map[string]int64{}
	for _, job := range t.runningJobs() {
		began[job.ID] = job.Submitted.Unix()
	}
	var made []*foresee
	for _, name := range t.tenantNames() {
		class, err := forecast.NewOnlineModel(forecast.BuiltIn()).Tenant(name)
		if err != nil {
			return nil, fmt.Errorf("making a forecaster: %w", err)
		}
		f := &foresee{
			class: class, shadows: forecast.NewExperts().Class(class),
			prices: forecast.Prices{WaitWorth: opt.WaitWorth, Boot: opt.Boot.Seconds()},
			began:  began, from: t.From.Unix(), next: t.From.Unix(),
		}
		if err := f.learnPast(t.pastOf(name)); err != nil {
			return nil, fmt.Errorf("teaching the forecaster of %s: %w", name, err)
		}
		made = append(made, f)
	}
	return made, nil
}

// moment is the beginning or the end of a job in the past.
type moment struct {
	at, submitted int64
	gpus          int
	end           bool
}

// pastOf are the moments of a tenant's jobs before the scored part, in order. Ends
// come before beginnings.
func (t Trace) pastOf(tenant string) []moment {
	var all []moment
	for _, job := range t.Before {
		if job.Tenant != tenant {
			continue
		}
		submitted := job.Submitted.Unix()
		all = append(all, moment{submitted, submitted, job.GPUs, false})
		if e := jobEnd(job); !e.After(t.From) {
			all = append(all, moment{e.Unix(), submitted, job.GPUs, true})
		}
	}
	rank := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(all, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(rank[a.end], rank[b.end]))
	})
	return all
}

// learnPast has the forecaster live through the past.
func (f *foresee) learnPast(past []moment) error {
	for i, m := range past {
		if i > 0 {
			for next := f.class.Next(past[i-1].at); next < m.at; next = f.class.Next(next) {
				f.class.Observe(next)
			}
		}
		err := error(nil)
		if m.end {
			err = f.class.End(m.at, m.gpus, m.submitted, m.submitted)
		} else {
			err = f.class.Submit(m.at, m.gpus)
		}
		if err != nil {
			return err
		}
		if m.at < f.from && (i+1 == len(past) || past[i+1].at > m.at) {
			f.class.Observe(m.at)
		}
	}
	if n := len(past); n > 0 {
		for next := f.class.Next(past[n-1].at); next < f.from; next = f.class.Next(next) {
			f.class.Observe(next)
		}
	}
	return nil
}

// Submit tells of an arrival. Those before the scored part were taught.
func (f *foresee) Submit(now int64, j backtest.Job) {
	if now > f.from {
		f.recordError(now, f.class.Submit(now, j.GPUs))
	}
}

// End tells of an end.
func (f *foresee) End(now int64, j backtest.Job, started int64) {
	if now <= f.from {
		return
	}
	submitted, ok := f.began[j.ID]
	if ok {
		started = submitted // it ran before the scored part
	} else {
		submitted = j.Submit
	}
	f.recordError(now, f.class.End(now, j.GPUs, submitted, started))
}

func (f *foresee) recordError(now int64, err error) {
	if f.err == nil {
		f.err = err
	}
	f.next = min(f.next, now)
}

// Next is when to look again.
func (f *foresee) Next() int64 { return f.next }

// Target looks.
func (f *foresee) Target(now int64) int {
	o := f.class.Observe(now)
	f.target = o.Demand + f.shadows.Hold(now, &o, f.prices, max(0, f.target-o.Demand), forecast.MaxHeld).Levels
	if f.next = f.class.Next(now); f.next <= now {
		f.next = math.MaxInt64
	}
	return f.target
}
