package quota

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Ask is what a request would add to what is committed.
type Ask struct {
	Window calendar.Interval `json:",omitzero"`
	// Since is when the booking began that the Window prolongs; zero: the Window
	// begins one. All that a booking spends counts in the period in which it began,
	// and it is as long as from there to the end of the Window.
	Since time.Time `json:",omitzero"`
	// Boot is the part of that length in which its nodes boot, which does not count.
	Boot        time.Duration `json:",omitzero"`
	Demand      Vector        `json:",omitzero"`
	Spend       Spend         `json:",omitzero"`
	Speculative bool          `json:",omitzero"` // it is charged to the speculation budget
}

// bookingStart is when the booking began that the ask is about.
func (a *Ask) bookingStart() time.Time {
	if a.Since.IsZero() {
		return a.Window.Start
	}
	return a.Since
}

// Holdings are an organization's limits and what counts against them. A nil
// Commitments is nothing.
type Holdings struct {
	Limits      Limits
	Committed   *Commitments
	Speculative *Commitments // the speculative part of Committed
	Cohort      []Member     // the other members of its cohort, in any order
}

// Member is another organization of a cohort.
type Member struct {
	Limits    Limits
	Committed *Commitments
}

// UsageReport is every number that a check of an organization's limits looks at.
type UsageReport struct {
	Limits      Limits  `json:",omitzero"`
	Ask         Ask     `json:",omitzero"`
	Peak        Vector  `json:",omitzero"`  // the most of each resource held at once in the window, without the ask
	Period      Spend   `json:",omitzero"`  // committed in the period in which the booking began
	Speculative Spend   `json:",omitzero"`  // speculative, on the day on which it began
	Shared      Shared  `json:",omitzero"`  // of the cohort, if there is one
	Times       []Times `json:",omitempty"` // of each violation, in their order
}

// Times say when a limit would be exceeded first, and the first start known at
// which the same ask would be within it; the zero time is not known.
type Times struct {
	At       time.Time
	ClearsAt time.Time
}

// Measure gathers what Violations judges. It changes nothing, and allocates
// nothing while everything is within its limits.
func Measure(h Holdings, a Ask) UsageReport {
	s := MeasureWithoutTimes(h, a)
	for _, v := range s.Violations() {
		s.Times = append(s.Times, timesOf(&h, &a, v))
	}
	return s
}

// MeasureWithoutTimes is Measure for who only wants to know whether there is a
// violation: the times, which take a search, stay empty.
func MeasureWithoutTimes(h Holdings, a Ask) UsageReport {
	s := UsageReport{
		Limits: h.Limits, Ask: a, Peak: peakUse(h.Committed, a.Window),
		Period: spentIn(h.Committed, h.Limits.Period, a.bookingStart()),
	}
	if a.Speculative {
		s.Speculative = spentIn(h.Speculative, PerDay, a.bookingStart())
	}
	if h.Limits.Cohort != "" {
		s.Shared = measureShared(&h, &a, s.Peak)
	}
	return s
}

func peakUse(c *Commitments, w calendar.Interval) Vector {
	if c == nil || !w.Valid() {
		return Vector{}
	}
	return c.Peak(w)
}

func spentIn(c *Commitments, p Period, t time.Time) Spend {
	if c == nil {
		return Spend{}
	}
	return c.In(p, t)
}

// Rule names a limit.
type Rule string

// The rules of an organization, and those of a key or a user.
const (
	RuleNominal     Rule = "nominal"     // held at one instant, with what may be borrowed
	RuleCohort      Rule = "cohort"      // what the cohort shares, at one instant
	RuleGPUHours    Rule = "gpu_hours"   // in one period
	RuleMoney       Rule = "money"       // in one period
	RuleSpeculation Rule = "speculation" // cost of speculative reservations in one day
	RuleLead        Rule = "lead"
	RuleWindow      Rule = "window"
)

// Violation is one limit that would be exceeded, with its numbers.
type Violation struct {
	Rule     Rule
	Resource Resource // of RuleNominal and RuleCohort
	Period   Period   // of RuleGPUHours, RuleMoney and RuleSpeculation
	Limit    int64    // in the rule's unit: the resource's, GPU-seconds, micro-dollars or seconds
	Asked    int64    // what it would be with the ask
	Times
}

// Violations lists every limit that the ask would exceed: by resource, then what
// a period may use. It is a function of the UsageReport alone.
func (s UsageReport) Violations() []Violation {
	var found []Violation
	ceiling := s.Limits.ceilingBounds()
	for r := range resources {
		if asked := s.Peak[r] + s.Ask.Demand[r]; s.Ask.Demand[r] > 0 && !ceiling[r].Allows(asked) {
			found = append(found, Violation{Rule: RuleNominal, Resource: r, Limit: ceiling[r].Int64(), Asked: asked})
		}
	}
	for r := range resources {
		if s.Limits.Cohort != "" && !s.Shared.Lendable[r].Allows(s.Shared.Use[r]) {
			found = append(found, Violation{Rule: RuleCohort, Resource: r, Limit: s.Shared.Lendable[r].Int64(),
				Asked: s.Shared.Use[r]})
		}
	}
	found = append(found, s.periodViolations()...)
	for i := range min(len(found), len(s.Times)) {
		found[i].Times = s.Times[i]
	}
	return found
}

func (s *UsageReport) periodViolations() []Violation {
	var found []Violation
	total := s.Period.plus(s.Ask.Spend)
	if limit := s.Limits.gpuSeconds(); !limit.Allows(total.GPUSeconds) {
		found = append(found, Violation{Rule: RuleGPUHours, Period: s.Limits.Period.orDay(), Limit: limit.Int64(),
			Asked: total.GPUSeconds})
	}
	if limit := s.Limits.MoneyPerPeriod; !limit.Allows(int64(total.Cost)) {
		found = append(found, Violation{Rule: RuleMoney, Period: s.Limits.Period.orDay(), Limit: limit.Int64(),
			Asked: int64(total.Cost)})
	}
	if cost := s.Speculative.Cost + s.Ask.Spend.Cost; s.Ask.Speculative && cost > s.Limits.SpeculationPerDay {
		found = append(found, Violation{Rule: RuleSpeculation, Period: PerDay, Limit: int64(s.Limits.SpeculationPerDay),
			Asked: int64(cost)})
	}
	return found
}
