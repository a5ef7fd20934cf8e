package ledger

import (
	"time"

	"github.com/forewarm/forewarm/ledger/recurrence"
)

// Spec is the schedule's rule as it was written.
func (s Schedule) Spec() recurrence.Spec {
	return recurrence.Spec{
		StartLocal: s.StartLocal, Timezone: s.Timezone, RRule: s.RRule, ExDates: s.ExDates, Length: s.Length,
		Policy: recurrence.Policy(s.DSTPolicy),
	}
}

// Scheduled is a new schedule and what its coming dates got.
type Scheduled struct {
	Schedule
	Dates   []ScheduleDate
	Remarks []string // for people: what may not have been meant
}

// endless is further ahead than any schedule is asked about.
const endless = 100 * 366 * 24 * time.Hour

// IsOver reports whether a schedule has no date that is still to come or going on. A
// rule that no longer parses is not known to be over.
func (s Schedule) IsOver(now time.Time) bool {
	rule, err := recurrence.Parse(s.Spec())
	return err == nil && len(rule.Between(now.Add(-s.Length), now.Add(endless), 1)) == 0
}
