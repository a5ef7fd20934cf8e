package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
)

// class is what the forecaster hears of one tenant. Sources tell of jobs in any
// order, and the forecaster learns in the order of time: what was heard waits
// until the next look.
type class struct {
	tenant  *forecast.Tenant
	shadows *forecast.Shadows // which decide what is held
	terms   terms
	waiting []event
	told    int64  // the second of the last look or event
	next    int64  // the second of the next look that may say something else
	target  int    // GPUs that the last plan was to have, those in use included
	steps   []step // demand after each arrival lately
}

// terms are what a class decides at: those of the configuration.
type terms struct {
	prices forecast.Prices
	most   int // GPUs beyond the demand
}

func (c Config) terms() terms {
	return terms{forecast.Prices{WaitWorth: c.Terms.WaitPrice / c.Terms.GPUPrice, Boot: c.Terms.Boot.Seconds(),
		Late: c.Late.Seconds()}, c.MaxGPUs}
}

// event is the beginning or the end of a job, in Unix seconds.
type event struct {
	At        int64           `json:"at"`
	GPUs      int             `json:"gpus"`
	Submitted int64           `json:"submitted,omitempty"` // of an end
	Started   int64           `json:"started,omitempty"`   // of an end, if it is known when the job found its GPUs
	End       bool            `json:"end,omitempty"`
	As        forecast.Traits `json:"as,omitzero"`
}

// step is a demand that lasts from a second on.
type step struct {
	At     int64 `json:"at"`
	Demand int   `json:"demand"`
}

// sortRank orders the events of one second: what ends comes before what begins,
// unless it began in the same second.
func (e event) sortRank() int {
	switch {
	case !e.End:
		return 1
	case e.Submitted < e.At:
		return 0
	default:
		return 2
	}
}

// catchUp tells the forecaster all that was heard of times up to now, and has it
// look as often as it would have, so that it learns from a history what it would
// have learned from living through it. The look of now itself is left.
func (c *class) catchUp(now int64) {
	c.sortEvents()
	n := 0
	for n < len(c.waiting) && c.waiting[n].At <= now {
		// What comes too late to be told in its order is told now.
		at := max(c.waiting[n].At, c.told)
		c.lookUntil(at)
		for ; n < len(c.waiting) && c.waiting[n].At <= at; n++ {
			c.ingestEvent(at, c.waiting[n])
		}
		c.told, c.next = at, at
	}
	c.waiting = slices.Delete(c.waiting, 0, n)
	c.lookUntil(now)
}

// sortEvents puts what waits in its order, so that the order in which it came changes
// nothing.
func (c *class) sortEvents() {
	slices.SortStableFunc(c.waiting, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.sortRank(), b.sortRank()),
			cmp.Compare(a.Submitted, b.Submitted),
			cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.As.Class, b.As.Class), cmp.Compare(a.As.Array, b.As.Array))
	})
}

// lookUntil makes the looks that are due before a second.
func (c *class) lookUntil(at int64) {
	for c.next < at && c.told > 0 {
		now := c.next
		o := c.observeAt(now)
		c.decideAt(now, &o, 0)
	}
}

// decideAt decides what to hold where so many GPUs are held. In a history nothing is: only the rules that are compared
// with each other follow it.
func (c *class) decideAt(at int64, o *forecast.Outlook, held int) forecast.Held {
	return c.shadows.Hold(at, o, c.terms.prices, held, c.terms.most)
}

func (c *class) observeAt(at int64) forecast.Outlook {
	o := c.tenant.Observe(at)
	c.told, c.next = max(c.told, at), c.tenant.Next(at)
	return o
}

// ingestEvent passes one event on. One that cannot be is left out: sources have checked
// what they read.
func (c *class) ingestEvent(at int64, e event) {
	if e.End {
		submitted := min(e.Submitted, at)
		_ = c.tenant.EndAs(at, e.GPUs, submitted, max(submitted, e.Started), e.As)
		return
	}
	if c.tenant.SubmitAs(at, e.GPUs, e.As) == nil {
		c.steps = append(c.steps, step{at, c.tenant.Demand()})
	}
}

// demandRise is how far demand rose above a base between two seconds.
func (c *class) demandRise(from, to int64, base int) int {
	most := base
	for _, s := range c.steps {
		if s.At >= from && s.At < to {
			most = max(most, s.Demand)
		}
	}
	return most - base
}

// keepSteps is for how many seconds arrivals are kept to score forecasts with.
const keepSteps = 7200

func (c *class) forgetUntil(now int64) {
	c.steps = slices.DeleteFunc(c.steps, func(s step) bool { return s.At < now-keepSteps })
}

// Now is what statistics expect from now on and what they would hold.
type Now struct {
	Start, End time.Time         // as long as it is asked for, unless another look says otherwise
	Demand     int               // GPUs of jobs that were submitted and have not ended
	Forecast   forecast.Forecast // of the GPUs that demand rises by, within the horizon of Held
	Watch      time.Duration     // how long Watched is for
	Watched    forecast.Forecast // as Forecast, within Watch, to be judged by
	Held       forecast.Held
	Next       time.Time // when looking again may say something else; zero is never
}

// currentState looks. Nothing is known of a tenant that no job was heard of.
func (p *Predictor) currentState(at time.Time, t *tenant) Now {
	start := time.Unix(at.Unix(), 0).UTC()
	n := Now{Start: start, End: p.boundExpiry(start, start)}
	if t == nil {
		return n
	}
	c := &t.class
	c.terms = p.cfg.terms()
	c.catchUp(at.Unix())
	o := c.observeAt(at.Unix())
	n.Demand = o.Demand
	n.Held = c.decideAt(at.Unix(), &o, max(0, c.target-o.Demand))
	n.Forecast = o.Within(n.Held.Horizon).AtMost(p.cfg.MaxGPUs)
	n.Watch = max(time.Second, (watched / time.Duration(p.cfg.Pace)).Truncate(time.Second))
	n.Watched = o.Within(n.Watch.Seconds()).AtMost(p.cfg.MaxGPUs)
	c.target = o.Demand + n.Held.Levels
	c.forgetUntil(at.Unix())
	if c.next != math.MaxInt64 {
		n.Next = time.Unix(c.next, 0).UTC()
	}
	n.End = p.boundExpiry(start, n.Next)
	return n
}

// boundExpiry is how long a decision is asked for: past the next look, so that a late
// one finds it standing, in steps, so that a plan that says the same mostly is the
// same, and bounded, so that GPUs are let go when no agent lives to do it.
func (p *Predictor) boundExpiry(now, next time.Time) time.Time {
	stretch := p.cfg.Terms.Boot.Truncate(time.Second) + time.Minute
	end := now.Add(stretch)
	if next.After(now) {
		end = next.Add(stretch)
	}
	return end.Truncate(stretch).Add(stretch)
}
