package quota

import (
	"time"
)

// CapUsage is every number that a check of one key's or user's caps looks at.
type CapUsage struct {
	Caps Caps          `json:",omitzero"`
	Ask  Ask           `json:",omitzero"`
	Lead time.Duration `json:",omitzero"` // from now to the window's start
	Peak int64         `json:",omitzero"` // the most GPUs promised at any instant of the window, without the ask
	Day  Spend         `json:",omitzero"` // of what starts on the day on which the booking began
}

// MeasureCaps gathers what Violations judges; a nil committed is nothing. It
// changes and allocates nothing.
func MeasureCaps(c Caps, committed *Commitments, a Ask, now time.Time) CapUsage {
	return CapUsage{
		Caps: c, Ask: a, Lead: a.Window.Start.Sub(now),
		Peak: peakUse(committed, a.Window)[GPUs], Day: spentIn(committed, PerDay, a.bookingStart()),
	}
}

// Violations lists every cap that the ask would exceed. It is a function of the
// CapUsage alone.
func (s CapUsage) Violations() []Violation {
	var found []Violation
	start := s.Ask.Window.Start
	day := Times{At: Day(s.Ask.bookingStart())}
	if asked := s.Peak + s.Ask.Demand[GPUs]; asked > int64(s.Caps.MaxGPUs) {
		found = append(found, Violation{Rule: RuleNominal, Limit: int64(s.Caps.MaxGPUs), Asked: asked,
			Times: Times{At: start}})
	}
	if total := s.Day.Cost + s.Ask.Spend.Cost; total > s.Caps.MaxPerDay {
		found = append(found, Violation{Rule: RuleMoney, Period: PerDay, Limit: int64(s.Caps.MaxPerDay),
			Asked: int64(total), Times: day})
	}
	if limit, total := inSeconds(s.Caps.GPUHoursPerDay), s.Day.GPUSeconds+s.Ask.Spend.GPUSeconds; !limit.Allows(total) {
		found = append(found, Violation{Rule: RuleGPUHours, Period: PerDay, Limit: limit.Int64(), Asked: total,
			Times: day})
	}
	if s.Lead > s.Caps.MaxLead {
		found = append(found, Violation{Rule: RuleLead, Limit: int64(s.Caps.MaxLead / time.Second),
			Asked: int64(s.Lead / time.Second),
			Times: Times{At: start}})
	}
	if length := s.Ask.Window.End.Sub(s.Ask.bookingStart()) - s.Ask.Boot; length > s.Caps.MaxWindow {
		found = append(found, Violation{Rule: RuleWindow, Limit: int64(s.Caps.MaxWindow / time.Second),
			Asked: int64(length / time.Second),
			Times: Times{At: start}})
	}
	return found
}
