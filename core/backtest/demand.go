package backtest

import (
	"cmp"
	"slices"
)

// Step is one step of a demand: from At, in Unix seconds, Level GPUs are wanted.
type Step struct {
	At    int64
	Level int
}

// Demand returns, tenant by tenant, the GPUs that would be in use if no job ever
// waited. There is one step for each second in which the demand changes.
func (t Trace) Demand() [][]Step {
	changes := make([][]Step, len(t.Tenants))
	for _, j := range t.Jobs {
		changes[j.Tenant] = append(changes[j.Tenant], Step{j.Submit, j.GPUs}, Step{j.Submit + j.Duration, -j.GPUs})
	}
	for i, c := range changes {
		changes[i] = toLevels(c)
	}
	return changes
}

// toLevels turns changes into levels, in place.
func toLevels(changes []Step) []Step {
	slices.SortFunc(changes, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	level, n := 0, 0
	for i, c := range changes {
		level += c.Level
		if i+1 < len(changes) && changes[i+1].At == c.At {
			continue
		}
		changes[n] = Step{c.At, level}
		n++
	}
	return changes[:n]
}

// Peak returns the highest level of the steps.
func Peak(steps []Step) int {
	peak := 0
	for _, s := range steps {
		peak = max(peak, s.Level)
	}
	return peak
}
