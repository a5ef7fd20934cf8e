package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
)

// Priority is a class of jobs: ledger.PriorityClass.
type Priority struct {
	Value         *int                `yaml:"value"`
	LeastRole     string              `yaml:"least_role"`
	Organizations []string            `yaml:"organizations"`
	Preempts      *bool               `yaml:"preempts"`
	Preemptible   *bool               `yaml:"preemptible"`
	Overdue       strictyaml.Duration `yaml:"overdue"`
}

// What there may be of classes.
const (
	mostPriorities    = 32
	mostPriorityValue = 1_000_000
)

// priorityName is how a class may be called.
var priorityName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// priorities are the classes; none: the ledger's own.
func (s Scheduling) priorities() ledger.Priorities {
	out := ledger.Priorities{Default: s.DefaultPriority}
	for name, p := range s.Priorities {
		if out.Classes == nil {
			out.Classes = map[string]ledger.PriorityClass{}
		}
		out.Classes[name] = ledger.PriorityClass{Value: valueOr(p.Value, 0), Least: ledger.Role(p.LeastRole),
			Organizations: p.Organizations, NoPreempting: !valueOr(p.Preempts, true), Preemptible: p.Preemptible,
			Overdue: p.Overdue.Std()}
	}
	return out
}

// lostPriorities are the classes that there were before, and are not any more.
func lostPriorities(before, now Scheduling) (lost []string) {
	for _, name := range before.priorities().Names() {
		if !now.priorities().Has(job.Priority(name)) {
			lost = append(lost, name)
		}
	}
	return lost
}

func (c Config) checkPriorities() error {
	s, at := c.Scheduling, "scheduling.priorities"
	if len(s.Priorities) > mostPriorities {
		return c.valueError(at, fmt.Sprintf("has more than %d classes", mostPriorities), "leave some out")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Priorities)) {
		if err := c.checkClass(at+"."+name, name, s.Priorities[name]); err != nil {
			return err
		}
	}
	all := s.priorities()
	names := strings.Join(all.Names(), ", ")
	if usual := cmp.Or(job.Priority(s.DefaultPriority), job.Normal); !all.Has(usual) {
		return c.valueError("scheduling.default_priority",
			"must name one of the classes under scheduling.priorities: "+names, "write one of them")
	}
	if all.Has(job.High) {
		return nil
	}
	least := map[string]string{"scheduling": s.HighPriority}
	for pool, rules := range s.Pools {
		least["scheduling.pools."+pool] = rules.HighPriority
	}
	for _, at := range slices.Sorted(maps.Keys(least)) {
		if least[at] != "" {
			return c.valueError(at+".high_priority", "is of the class high, and scheduling.priorities has none of this name",
				"write least_role: "+least[at]+" into the class that is meant")
		}
	}
	return nil
}

func (c Config) checkClass(at, name string, p Priority) error {
	switch {
	case !priorityName.MatchString(name):
		return c.valueError(at, fmt.Sprintf("%q is no name of a class: up to 32 lower-case letters, digits, - and _, of "+
			"which the first is a letter or a digit", name), "write urgent")
	case p.Value == nil || *p.Value < -mostPriorityValue || *p.Value > mostPriorityValue:
		return c.valueError(at+".value", fmt.Sprintf("must be given, and be between %d and %d: jobs of higher values go "+
			"first", -mostPriorityValue, mostPriorityValue), "write value: 1, which is that of normal")
	case p.LeastRole != "" && !slices.Contains(ledger.Order, ledger.Role(p.LeastRole)):
		return c.valueError(at+".least_role", fmt.Sprintf("%q is no role", p.LeastRole), "write member, admin or operator")
	case slices.Contains(p.Organizations, ""):
		return c.valueError(at+".organizations", "has an empty name", "write names as forewarm org list has them")
	}
	return nil
}
