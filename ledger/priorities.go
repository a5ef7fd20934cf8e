package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
)

// PriorityClass is what jobs of a priority may do, and who may submit them.
type PriorityClass struct {
	Value         int           // jobs of higher values are served first
	Least         Role          // whose jobs may have it; empty: whoever may submit
	Organizations []string      // names of those whose jobs may have it; none: all
	NoPreempting  bool          // nobody is told to leave for its jobs
	Preemptible   *bool         // whether its jobs are told to leave for others, whatever they say; nil: as they say
	Overdue       time.Duration // after so long a wait a job of it goes first; 0: as the pool says
}

// Priorities are the classes of priority by name, and which a job has that names none. The zero Priorities are low,
// normal and high, and normal.
type Priorities struct {
	Classes map[string]PriorityClass
	Default string
}

// usualPriorities are those of an installation that names none.
var usualPriorities = map[string]PriorityClass{string(job.Low): {Value: 0}, string(job.Normal): {Value: 1},
	string(job.High): {Value: 2}}

func (p Priorities) withDefaults() Priorities {
	if len(p.Classes) == 0 {
		p.Classes = usualPriorities
	}
	p.Default = cmp.Or(p.Default, string(job.Normal))
	return p
}

// Names are those of the classes, the lowest first.
func (p Priorities) Names() []string {
	all := p.withDefaults().Classes
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[a].Value, all[b].Value), cmp.Compare(a, b))
	})
}

// Has reports whether there is a class of the name.
func (p Priorities) Has(name job.Priority) bool {
	_, known := p.withDefaults().Classes[string(name)]
	return known
}

// CountsAs is the class by which a job of a priority is served: the default one, where its own is not there any more.
func (p Priorities) CountsAs(name job.Priority) job.Priority {
	if p = p.withDefaults(); p.Has(name) {
		return name
	}
	return job.Priority(p.Default)
}

// Of is the class by which a job of a priority is served.
func (p Priorities) Of(name job.Priority) PriorityClass {
	return p.withDefaults().Classes[string(p.CountsAs(name))]
}

// ForScheduler are the classes as the scheduler has them.
func (p Priorities) ForScheduler() map[string]scheduler.Class {
	out := map[string]scheduler.Class{}
	for name, c := range p.withDefaults().Classes {
		out[name] = scheduler.Class{Level: c.Value, Overdue: c.Overdue, Patient: c.NoPreempting}
	}
	return out
}

// AllowsLeaving reports whether a job may be told to leave for others, by what it and its class say.
func (p Priorities) AllowsLeaving(j job.Job) bool {
	if is := p.Of(j.Priority).Preemptible; is != nil {
		return *is
	}
	return j.Preemptible
}

// PriorityError says that somebody may not submit jobs of a priority to a pool.
type PriorityError struct {
	Pool     string // its name
	Priority job.Priority
	Least    Role   // whose jobs may have it; empty: it is other organizations' alone
	Instead  string // the class that a job has which names none
}

// Error names the pool, the priority and whose it is.
func (e *PriorityError) Error() string {
	if e.Least == "" {
		return "the priority " + string(e.Priority) + " is for jobs of other organizations"
	}
	return "pool " + e.Pool + " takes jobs of the priority " + string(e.Priority) + " from keys with the role " +
		string(e.Least) + " or a higher one alone"
}

// CheckPriority returns *InvalidError for a class that there is not, and *PriorityError for one that somebody of the
// role and the organization may not use in the pool.
func (s Scheduling) CheckPriority(pool string, name job.Priority, who Role, organization string) error {
	if !s.Priorities.Has(name) {
		return &InvalidError{Field: "priority", Rule: "must be one of " + strings.Join(s.Priorities.Names(), ", ") +
			": these are the priorities here", Fix: "write one of them, or leave it out for " +
			s.Priorities.withDefaults().Default}
	}
	c := s.Priorities.Of(name)
	if name == job.High {
		c.Least = cmp.Or(s.HighPriority, c.Least)
	}
	instead := s.Priorities.withDefaults().Default
	if c.Least != "" && !who.Includes(c.Least) {
		return &PriorityError{Pool: pool, Priority: name, Least: c.Least, Instead: instead}
	}
	if len(c.Organizations) > 0 && !slices.Contains(c.Organizations, organization) {
		return &PriorityError{Pool: pool, Priority: name, Instead: instead}
	}
	return nil
}

// CheckLeaving returns *InvalidError where a job says the opposite of its class about leaving for others; nil: it says
// nothing.
func (p Priorities) CheckLeaving(name job.Priority, says *bool) error {
	is := p.Of(name).Preemptible
	if is == nil || says == nil || *is == *says {
		return nil
	}
	rule := "must be left out: jobs of the priority " + string(name) + " are never told to leave for others"
	if *is {
		rule = "must be left out: jobs of the priority " + string(name) + " leave for others, whatever they say"
	}
	return &InvalidError{Field: "preemptible", Rule: rule, Fix: "leave it out, or use another priority"}
}
