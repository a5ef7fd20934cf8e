package ledger

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/scheduler"
)

// Scheduling is how the jobs of a pool are scheduled. The zero value is made whole by its defaults.
type Scheduling struct {
	Order       scheduler.Order // zero: balanced
	ShareWeight *float64        // how much a tenant's use counts against it in balanced; nil: 0.1
	Overdue     time.Duration   // after so long a wait a job goes first; 0: two days
	// Preemption has jobs that allow it told to leave for those that go before them.
	Preemption bool
	// Preemptible are jobs that do not say whether they may be told to leave.
	Preemptible bool
	MinRuntime  time.Duration // for which nobody is told to leave; 0: 10 minutes
	LeaveWithin time.Duration // of the time between being told to leave and KILL; 0: 2 minutes
	MostTimes   int           // a job leaves at most so often; 0: 3
	// Heat is from which temperatures of a node's hottest GPU jobs start elsewhere; zeros: 75 °C, 85 °C, 5 minutes.
	Heat node.HeatRules
	// NearLabel is the key of the label whose value says which nodes are near each other; empty: rack.
	NearLabel string
	// HighPriority is the least role whose jobs may have the high priority; empty: whoever may submit.
	HighPriority Role
	// Priorities are those of the installation.
	Priorities Priorities
	Tuning
}

// Tuning are the numbers by which turns are decided, and who may wait. Zero values have the defaults.
type Tuning struct {
	HalfLife         time.Duration      // after so long, use counts half; 0: 7 days
	StartCharge      time.Duration      // for which a start counts at once; 0: an hour
	Softening        time.Duration      // that is added to waits and runtimes in balanced; 0: 10 minutes
	Bands            []int              // GPU-hours that a job has had, at which it is in the next band; nil: 1, 10, 100
	Promises         *int               // jobs of a priority that are promised a start at a time; nil: 1
	Crowd            float64            // of the GPUs, that overdue jobs ask for together; 0: a quarter
	MostExcess       float64            // how many times as much at most counts against a person; 0: 16
	Factors          *scheduler.Factors // nil: age and share alike, age full at 7 days
	RestartCost      time.Duration      // of a job that leaves, beside the work that it loses; 0: 2 minutes
	MostPreempting   int                // jobs for which others leave in one decision; 0: 16
	MostWaiting      int                // jobs that wait or run in the pool; 0: MostJobs
	MostWaitingOfOne int                // of these, of one organization; 0: MostJobsOfOne
	DefaultRuntime   time.Duration      // of a job that names none, where leases may be so long; 0: a day
}

func (t Tuning) withDefaults() Tuning {
	t.HalfLife = cmp.Or(t.HalfLife, 7*24*time.Hour)
	t.RestartCost = cmp.Or(t.RestartCost, 2*time.Minute)
	t.MostPreempting = cmp.Or(t.MostPreempting, 16)
	t.MostWaiting = cmp.Or(t.MostWaiting, MostJobs)
	t.MostWaitingOfOne = min(cmp.Or(t.MostWaitingOfOne, MostJobsOfOne), t.MostWaiting)
	t.DefaultRuntime = cmp.Or(t.DefaultRuntime, 24*time.Hour)
	return t
}

// setOn has a policy go by it.
func (t Tuning) setOn(p *scheduler.Policy) {
	p.FairShare = t.fairness(p.FairShare)
	p.Softening, p.Crowd = cmp.Or(t.Softening, p.Softening), cmp.Or(t.Crowd, p.Crowd)
	p.MostExcess = cmp.Or(t.MostExcess, p.MostExcess)
	if t.Bands != nil {
		p.Bands = t.Bands
	}
	if t.Promises != nil {
		p.Promises = *t.Promises
	}
	if t.Factors != nil {
		p.Factors = *t.Factors
	}
}

func (t Tuning) fairness(f fairshare.Policy) fairshare.Policy {
	f.HalfLife, f.Entry = cmp.Or(t.HalfLife, f.HalfLife), cmp.Or(t.StartCharge, f.Entry)
	return f
}

// FairnessOf is how the use of a pool is charged and forgotten.
func (c Config) FairnessOf(pool string) fairshare.Policy {
	s := c.Scheduling.Now()
	if own, is := s.Pools[pool]; is {
		return own.fairness(c.Fairness)
	}
	return s.fairness(c.Fairness)
}

// SchedulingConfig is how jobs are scheduled, and how many each person may submit.
type SchedulingConfig struct {
	Scheduling
	Pools map[string]Scheduling // those that differ, by name
	// Rate is how many jobs each person, or a key that is nobody's, may submit in each organization.
	Rate queue.Rate
}

// LiveScheduling is how jobs are scheduled by now. It may be read and set at the same time; nil is never set, and has
// the defaults.
type LiveScheduling struct {
	now atomic.Pointer[SchedulingConfig]
}

// NewLiveScheduling returns one that says c until it is set to something else.
func NewLiveScheduling(c SchedulingConfig) *LiveScheduling {
	l := &LiveScheduling{}
	l.Set(c)
	return l
}

// Now is what holds now. Nothing of it may be changed.
func (l *LiveScheduling) Now() SchedulingConfig {
	if l == nil {
		return SchedulingConfig{}
	}
	return *l.now.Load()
}

// String is what holds now.
func (l *LiveScheduling) String() string { return fmt.Sprintf("%+v", l.Now()) }

// Set has c hold for what is decided from now on.
func (l *LiveScheduling) Set(c SchedulingConfig) { l.now.Store(&c) }

// Of is how the jobs of a pool are scheduled.
func (c SchedulingConfig) Of(pool string) Scheduling {
	s, own := c.Pools[pool]
	if !own {
		s = c.Scheduling
	}
	s.Priorities = c.Priorities.withDefaults()
	s.MinRuntime = cmp.Or(s.MinRuntime, 10*time.Minute)
	s.LeaveWithin = cmp.Or(s.LeaveWithin, 2*time.Minute)
	s.MostTimes = cmp.Or(s.MostTimes, 3)
	s.Tuning = s.withDefaults()
	s.NearLabel = cmp.Or(s.NearLabel, "rack")
	s.Heat.WarmFrom = cmp.Or(s.Heat.WarmFrom, 75)
	s.Heat.HotFrom = cmp.Or(s.Heat.HotFrom, 85)
	s.Heat.CoolDown = cmp.Or(s.Heat.CoolDown, 5*time.Minute)
	return s
}

// LeastWarm is the lowest temperature, in °C, that matters in any pool.
func (c SchedulingConfig) LeastWarm() int {
	least := c.Of("").Heat.WarmFrom
	for pool := range c.Pools {
		least = min(least, c.Of(pool).Heat.WarmFrom)
	}
	return least
}

// Policy is what the scheduler goes by, for tenants of these weights.
func (s Scheduling) Policy(weights map[string]int) scheduler.Policy {
	p := scheduler.Default()
	p.Classes = s.Priorities.ForScheduler()
	p.Order, p.Overdue = cmp.Or(s.Order, p.Order), cmp.Or(s.Overdue, p.Overdue)
	if s.ShareWeight != nil {
		p.ShareWeight = *s.ShareWeight
	}
	s.setOn(&p)
	p.Placement.WarmFrom, p.Placement.HotFrom, p.Placement.CoolDown = s.Heat.WarmFrom, s.Heat.HotFrom, s.Heat.CoolDown
	p.Tenants = make(map[string]scheduler.Tenant, len(weights))
	for tenant, weight := range weights {
		p.Tenants[tenant] = scheduler.Tenant{Weight: weight}
	}
	// Who allows it leaves also where it keeps no checkpoints: it said so.
	p.Preemption = scheduler.Preemption{Enabled: s.Preemption, LoseWork: true, MinRuntime: s.MinRuntime,
		Grace: s.LeaveWithin, MostTimes: s.MostTimes, Restart: s.RestartCost, PerCycle: s.MostPreempting}
	return p
}
