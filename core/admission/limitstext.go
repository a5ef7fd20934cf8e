package admission

import (
	"strconv"

	"github.com/forewarm/forewarm/core/quota"
)

// addUsage writes what an organization's limits were checked on.
func (w *recordText) addUsage(u *quota.UsageReport) {
	w.b = append(w.b, '{')
	if u.Limits != (quota.Limits{}) {
		w.key("Limits")
		w.addLimits(&u.Limits)
	}
	w.ask("Ask", &u.Ask)
	w.vector("Peak", u.Peak)
	w.spend("Period", u.Period)
	w.spend("Speculative", u.Speculative)
	if u.Shared != (quota.Shared{}) {
		w.other("Shared", u.Shared)
	}
	if len(u.Times) > 0 {
		w.other("Times", u.Times)
	}
	w.b = append(w.b, '}')
}

func (w *recordText) addLimits(l *quota.Limits) {
	w.b = append(w.b, '{')
	w.number("GPUs", int64(l.GPUs))
	w.number("SpeculationPerDay", int64(l.SpeculationPerDay))
	w.limit("GPUMemoryMiB", l.GPUMemoryMiB)
	w.limit("CPUs", l.CPUs)
	w.limit("MemoryMiB", l.MemoryMiB)
	w.limit("Bookings", l.Bookings)
	w.text("Cohort", l.Cohort)
	if l.Borrowing != (quota.Bounds{}) {
		w.other("Borrowing", l.Borrowing)
	}
	if l.Lending != (quota.Bounds{}) {
		w.other("Lending", l.Lending)
	}
	w.text("Period", string(l.Period))
	w.limit("GPUHours", l.GPUHours)
	w.limit("MoneyPerPeriod", l.MoneyPerPeriod)
	w.number("Weight", int64(l.Weight))
	w.b = append(w.b, '}')
}

// limit adds a bound, if there is one: one of zero is not left out.
func (w *recordText) limit(name string, l quota.Limit) {
	if n, bounded := l.Bound(); bounded {
		w.key(name)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

func (w *recordText) ask(name string, a *quota.Ask) {
	if *a == (quota.Ask{}) {
		return
	}
	w.key(name)
	w.b = append(w.b, '{')
	w.window("Window", a.Window)
	w.time("Since", a.Since)
	w.number("Boot", int64(a.Boot))
	w.vector("Demand", a.Demand)
	w.spend("Spend", a.Spend)
	w.flag("Speculative", a.Speculative)
	w.b = append(w.b, '}')
}

func (w *recordText) vector(name string, v quota.Vector) {
	if v == (quota.Vector{}) {
		return
	}
	w.key(name)
	for i, n := range v {
		before := byte(',')
		if i == 0 {
			before = '['
		}
		w.b = strconv.AppendInt(append(w.b, before), n, 10)
	}
	w.b = append(w.b, ']')
}

func (w *recordText) spend(name string, s quota.Spend) {
	if s == (quota.Spend{}) {
		return
	}
	w.key(name)
	w.b = append(w.b, '{')
	w.number("Cost", int64(s.Cost))
	w.number("GPUSeconds", s.GPUSeconds)
	w.b = append(w.b, '}')
}

// caps adds what the caps of a key or a user were checked on.
func (w *recordText) caps(name string, c *CapFacts) {
	if *c == (CapFacts{}) {
		return
	}
	w.key(name)
	w.b = strconv.AppendBool(append(w.b, `{"Capped":`...), c.Capped)
	if c.Caps != (quota.Caps{}) {
		w.key("Caps")
		w.b = append(w.b, '{')
		w.number("MaxGPUs", int64(c.Caps.MaxGPUs))
		w.number("MaxPerDay", int64(c.Caps.MaxPerDay))
		w.number("MaxLead", int64(c.Caps.MaxLead))
		w.number("MaxWindow", int64(c.Caps.MaxWindow))
		w.limit("GPUHoursPerDay", c.Caps.GPUHoursPerDay)
		w.b = append(w.b, '}')
	}
	w.ask("Ask", &c.Ask)
	w.number("Lead", int64(c.Lead))
	w.number("Peak", c.Peak)
	w.spend("Day", c.Day)
	w.b = append(w.b, '}')
}
