package quota

import (
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Tightest returns the caps that allow exactly what both allow.
func (c Caps) Tightest(o Caps) Caps {
	c.MaxGPUs, c.MaxPerDay = min(c.MaxGPUs, o.MaxGPUs), min(c.MaxPerDay, o.MaxPerDay)
	c.MaxLead, c.MaxWindow = min(c.MaxLead, o.MaxLead), min(c.MaxWindow, o.MaxWindow)
	if c.GPUHoursPerDay.exceeds(o.GPUHoursPerDay) {
		c.GPUHoursPerDay = o.GPUHoursPerDay
	}
	return c
}

// Beyond names the first cap that allows more than o does, as contract.Caps calls
// it; empty: c allows nothing that o does not.
func (c Caps) Beyond(o Caps) string {
	switch {
	case c.MaxGPUs > o.MaxGPUs:
		return "max_gpus"
	case c.MaxPerDay > o.MaxPerDay:
		return "max_per_day"
	case c.MaxLead > o.MaxLead:
		return "max_lead_seconds"
	case c.MaxWindow > o.MaxWindow:
		return "max_window_seconds"
	case c.GPUHoursPerDay.exceeds(o.GPUHoursPerDay):
		return "gpu_hours_per_day"
	}
	return ""
}

// exceeds reports whether the limit allows more than another one.
func (l Limit) exceeds(o Limit) bool { return o.set && (!l.set || l.n > o.n) }

// Sum adds up commitments of which nil ones are nothing. With one that is not nil
// the sum is that one itself, and follows it.
func Sum(parts []*Commitments) *Commitments {
	parts = slices.DeleteFunc(slices.Clone(parts), func(c *Commitments) bool { return c == nil })
	if len(parts) == 1 {
		return parts[0]
	}
	sum := &Commitments{days: map[int64]Spend{}, months: map[int64]Spend{}}
	for _, part := range parts {
		sum.absorb(part)
	}
	return sum
}

// absorb adds what another one holds and has spent.
func (c *Commitments) absorb(o *Commitments) {
	for at, more := o.Next(time.Time{}); more; {
		next, again := o.Next(at)
		if again {
			c.Hold(calendar.Interval{Start: at, End: next}, o.At(at))
		}
		at, more = next, again
	}
	for _, day := range slices.Sorted(maps.Keys(o.days)) {
		addSpend(c.days, day, o.days[day])
	}
	for _, month := range slices.Sorted(maps.Keys(o.months)) {
		addSpend(c.months, month, o.months[month])
	}
}
