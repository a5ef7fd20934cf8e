package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
)

// Scheduling is how the jobs of pools are scheduled, and how many people may submit.
type Scheduling struct {
	SchedulingRules `yaml:",inline"`
	// Submissions bounds those of each person, or of a key that is nobody's.
	Submissions struct {
		Every  strictyaml.Duration `yaml:"every"`
		Burst  int                 `yaml:"burst"`
		PerDay int                 `yaml:"per_day"`
	} `yaml:"submissions"`
	// Pools are those that differ, by name: what is left out is as of all.
	Pools map[string]SchedulingRules `yaml:"pools"`
	// Priorities are the classes of jobs, by name; none: low, normal and high.
	Priorities      map[string]Priority `yaml:"priorities"`
	DefaultPriority string              `yaml:"default_priority"`
}

// SchedulingRules are ledger.Scheduling. Zero values mean its defaults.
type SchedulingRules struct {
	Order           string              `yaml:"order"`
	ShareWeight     *float64            `yaml:"share_weight"`
	Overdue         strictyaml.Duration `yaml:"overdue"`
	Preemption      *bool               `yaml:"preemption"`
	Preemptible     *bool               `yaml:"preemptible"`
	MinRuntime      strictyaml.Duration `yaml:"min_runtime"`
	LeaveWithin     strictyaml.Duration `yaml:"leave_within"`
	MostPreemptions int                 `yaml:"most_preemptions"`
	HighPriority    string              `yaml:"high_priority"`
	NearLabel       string              `yaml:"near_label"`
	Heat            HeatRules           `yaml:"heat"`
	Tuning          `yaml:",inline"`
}

// HeatRules are node.HeatRules. Zero values mean the ledger's defaults.
type HeatRules struct {
	WarmFrom int                 `yaml:"warm_from"`
	HotFrom  int                 `yaml:"hot_from"`
	CoolDown strictyaml.Duration `yaml:"cool_down"`
}

func (r HeatRules) over(all HeatRules) HeatRules {
	return HeatRules{WarmFrom: cmp.Or(r.WarmFrom, all.WarmFrom), HotFrom: cmp.Or(r.HotFrom, all.HotFrom),
		CoolDown: cmp.Or(r.CoolDown, all.CoolDown)}
}

// over are the rules with those of all pools where they say nothing.
func (r SchedulingRules) over(all SchedulingRules) SchedulingRules {
	return SchedulingRules{Order: cmp.Or(r.Order, all.Order), ShareWeight: cmp.Or(r.ShareWeight, all.ShareWeight),
		Overdue: cmp.Or(r.Overdue, all.Overdue), Preemption: cmp.Or(r.Preemption, all.Preemption),
		Preemptible: cmp.Or(r.Preemptible, all.Preemptible), MinRuntime: cmp.Or(r.MinRuntime, all.MinRuntime),
		LeaveWithin:     cmp.Or(r.LeaveWithin, all.LeaveWithin),
		MostPreemptions: cmp.Or(r.MostPreemptions, all.MostPreemptions),
		HighPriority:    cmp.Or(r.HighPriority, all.HighPriority),
		NearLabel:       cmp.Or(r.NearLabel, all.NearLabel), Heat: r.Heat.over(all.Heat),
		Tuning: r.Tuning.over(all.Tuning)}
}

func (r SchedulingRules) rules() ledger.Scheduling {
	return ledger.Scheduling{Order: scheduler.Order(r.Order), ShareWeight: r.ShareWeight, Overdue: r.Overdue.Std(),
		Preemption: r.Preemption != nil && *r.Preemption, Preemptible: r.Preemptible != nil && *r.Preemptible,
		MinRuntime: r.MinRuntime.Std(), LeaveWithin: r.LeaveWithin.Std(), MostTimes: r.MostPreemptions,
		HighPriority: ledger.Role(r.HighPriority), NearLabel: r.NearLabel, Tuning: r.Tuning.rules(),
		Heat: node.HeatRules{WarmFrom: r.Heat.WarmFrom, HotFrom: r.Heat.HotFrom, CoolDown: r.Heat.CoolDown.Std()}}
}

func (s Scheduling) config() ledger.SchedulingConfig {
	out := ledger.SchedulingConfig{Scheduling: s.rules(), Pools: map[string]ledger.Scheduling{},
		Rate: queue.Rate{Every: s.Submissions.Every.Std(), Burst: s.Submissions.Burst, Daily: s.Submissions.PerDay}}
	out.Priorities = s.priorities()
	for pool, rules := range s.Pools {
		out.Pools[pool] = rules.over(s.SchedulingRules).rules()
	}
	return out
}

// mostLeaveWithin bounds for how long GPUs may be neither in use nor free.
const mostLeaveWithin = time.Hour

func (c Config) checkScheduling() error {
	if err := c.checkPriorities(); err != nil {
		return err
	}
	if err := c.checkRules("scheduling", c.Scheduling.SchedulingRules); err != nil {
		return err
	}
	for pool, rules := range c.Scheduling.Pools {
		if err := c.checkRules("scheduling.pools."+pool, rules.over(c.Scheduling.SchedulingRules)); err != nil {
			return err
		}
	}
	s := c.Scheduling.Submissions
	if s.Every < 0 || s.Burst < 0 || s.PerDay < 0 || s.Burst > 0 && s.Every == 0 {
		return c.valueError("scheduling.submissions", "needs every, and no negative values",
			"write every: 10s and burst: 100, or leave it out")
	}
	return nil
}

func (c Config) checkRules(at string, r SchedulingRules) error {
	switch {
	case r.Order != "" && !slices.Contains(scheduler.Orders(), scheduler.Order(r.Order)):
		return c.valueError(at+".order", fmt.Sprintf("%q is no order of jobs", r.Order),
			fmt.Sprintf("use one of %q", scheduler.Orders()))
	case r.ShareWeight != nil && (*r.ShareWeight < 0 || *r.ShareWeight > 1000):
		return c.valueError(at+".share_weight", "must be between 0 and 1000", "write 0.1")
	case r.Overdue < 0 || r.MinRuntime < 0 || r.MostPreemptions < 0:
		return c.valueError(at, "has a negative value", "leave it out for the default")
	case r.LeaveWithin != 0 && (r.LeaveWithin.Std() < time.Second || r.LeaveWithin.Std() > mostLeaveWithin):
		return c.valueError(at+".leave_within", "must be between 1s and 1h", "write 2m")
	case r.HighPriority != "" && !slices.Contains(ledger.Order, ledger.Role(r.HighPriority)):
		return c.valueError(at+".high_priority", fmt.Sprintf("%q is no role", r.HighPriority),
			"write member, admin or operator")
	case r.NearLabel != "" && !node.IsWord(r.NearLabel):
		return c.valueError(at+".near_label", fmt.Sprintf("%q is no key of a label", r.NearLabel), "write rack")
	}
	if err := c.checkTuning(at, r.Tuning); err != nil {
		return err
	}
	return c.checkHeat(at+".heat", ledger.SchedulingConfig{Scheduling: r.rules()}.Of("").Heat)
}

// checkHeat refuses temperatures that no GPU has, and a cool-down that ends between two reports of a daemon.
func (c Config) checkHeat(at string, r node.HeatRules) error {
	switch {
	case r.WarmFrom < 1 || r.HotFrom > mostCelsius || r.WarmFrom > r.HotFrom:
		return c.valueError(at, fmt.Sprintf("needs 1 <= warm_from <= hot_from <= %d, in °C, and has %d and %d",
			mostCelsius, r.WarmFrom, r.HotFrom), "write warm_from: 75 and hot_from: 85")
	case r.CoolDown < time.Minute || r.CoolDown > 24*time.Hour:
		return c.valueError(at+".cool_down", "must be between 1m and 24h", "write 5m")
	}
	return nil
}

// mostCelsius is a temperature that no GPU reaches: hot_from with it switches heat off.
const mostCelsius = 200
