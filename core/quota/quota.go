// Package quota says what an organization, a user and a key may hold: limits on
// every resource at any instant, now and in the future, on what a period may
// use and cost, and on what a cohort of organizations borrows and lends.
//
// Measure gathers every number that a check looks at into a UsageReport, and
// UsageReport.Violations judges them, so that a check can be repeated from what was
// written down.
package quota

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Limits are an organization's. GPUs and SpeculationPerDay at zero mean none of
// it; the zero Limit and the zero Bounds mean no limit.
type Limits struct {
	GPUs              int            `json:",omitzero"` // held and promised at any one instant
	SpeculationPerDay money.MicroUSD `json:",omitzero"` // cost of speculative reservations that start in one UTC day

	// Held and promised at any one instant.
	GPUMemoryMiB Limit `json:",omitzero"`
	CPUs         Limit `json:",omitzero"`
	MemoryMiB    Limit `json:",omitzero"`
	Bookings     Limit `json:",omitzero"` // reservations and allocations

	// Cohort names the organizations that lend each other what they do not use;
	// empty: none. Without a cohort Borrowing and Lending mean nothing.
	Cohort    string `json:",omitzero"`
	Borrowing Bounds `json:",omitzero"` // how far beyond its own limits it may go
	Lending   Bounds `json:",omitzero"` // how much of its own limits the others may use

	Period         Period `json:",omitzero"`
	GPUHours       Limit  `json:",omitzero"` // of what starts in one period
	MoneyPerPeriod Limit  `json:",omitzero"` // in micro-dollars, of what starts in one period

	Weight int `json:",omitzero"` // of its fair share; 0 counts as 1
}

// Nominal returns the limits of each resource at any one instant, as they are
// without a cohort.
func (l Limits) Nominal() Bounds {
	var all Bounds
	for r := range resources {
		all[r] = l.nominalOf(r)
	}
	return all
}

// nominalOf is one of Nominal, without making the others.
func (l *Limits) nominalOf(r Resource) Limit {
	switch r {
	case GPUs:
		return AtMost(int64(max(l.GPUs, 0)))
	case GPUMemoryMiB:
		return l.GPUMemoryMiB
	case CPUs:
		return l.CPUs
	case MemoryMiB:
		return l.MemoryMiB
	default:
		return l.Bookings
	}
}

// ceilingBounds is how far it may go whatever the others leave: in a cohort its own
// limits and what it may borrow.
func (l *Limits) ceilingBounds() Bounds {
	own := l.Nominal()
	if l.Cohort == "" {
		return own
	}
	for r := range own {
		own[r] = own[r].plus(l.Borrowing[r])
	}
	return own
}

// MostGPUs is how many GPUs it may hold at any one instant, whatever the others of its cohort leave; false: there is
// no bound.
func (l Limits) MostGPUs() (int, bool) {
	all := l.ceilingBounds()
	n, bounded := all[GPUs].Bound()
	return int(min(n, math.MaxInt32)), bounded
}

// gpuSeconds is GPUHours in seconds, the unit that is summed.
func (l *Limits) gpuSeconds() Limit { return inSeconds(l.GPUHours) }

func inSeconds(hours Limit) Limit {
	n, ok := hours.Bound()
	if !ok || n > math.MaxInt64/secondsPerHour {
		return Limit{}
	}
	return AtMost(n * secondsPerHour)
}

const secondsPerHour = 60 * 60

// Caps narrow what one key or one user may do. They are enforced by the server:
// an agent's own configuration can only be stricter. Zero means none of it, and
// the zero Limit no limit.
type Caps struct {
	MaxGPUs        int            `json:",omitzero"` // promised at any one instant
	MaxPerDay      money.MicroUSD `json:",omitzero"` // cost of reservations that start in one UTC day
	MaxLead        time.Duration  `json:",omitzero"` // how far ahead a reservation may start
	MaxWindow      time.Duration  `json:",omitzero"` // the longest single reservation
	GPUHoursPerDay Limit          `json:",omitzero"` // of reservations that start in one UTC day
}

// Period is what a budget is for.
type Period string

// The periods. The empty Period is PerDay.
const (
	PerDay   Period = "day"   // a UTC day
	PerMonth Period = "month" // a calendar month in UTC
)

func (p Period) orDay() Period {
	if p == PerMonth {
		return p
	}
	return PerDay
}

// Start returns the first instant of t's period.
func (p Period) Start(t time.Time) time.Time {
	if p == PerMonth {
		year, month, _ := t.UTC().Date()
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return Day(t)
}

// Next returns the first instant of the period after t's.
func (p Period) Next(t time.Time) time.Time {
	if p == PerMonth {
		return p.Start(t).AddDate(0, 1, 0)
	}
	return Day(t).AddDate(0, 0, 1)
}

// Day returns the start of t's UTC day.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
