// Package recurrence turns a schedule's rule into instants: a first local
// start, an IANA time zone, a subset of RFC 5545 (DAILY, WEEKLY or MONTHLY with
// INTERVAL, BYDAY, BYMONTHDAY, COUNT and UNTIL) and excluded dates.
//
// The library underneath runs on wall-clock times without any zone. The mapping
// to instants is ours, because libraries disagree on it and some start an hour
// early when summer time begins (teambition/rrule-go issues 63 and others):
//   - a local time that does not exist is moved forward by the gap (Shift) or
//     dropped (Skip);
//   - of a local time that occurs twice, the first counts;
//   - an occurrence ends a fixed length after its start, whatever clocks do.
package recurrence

import (
	"time"

	"github.com/teambition/rrule-go"
)

// Policy says what becomes of a local time that does not exist.
type Policy string

// The policies.
const (
	Shift Policy = "shift"
	Skip  Policy = "skip"
)

// Spec is a rule as people write it.
type Spec struct {
	StartLocal string   // the first start: 2006-01-02T15:04:05
	Timezone   string   // IANA name
	RRule      string   // without the leading "RRULE:"
	ExDates    []string // local dates: 2006-01-02
	Length     time.Duration
	Policy     Policy // empty means Shift
}

// Between parses the spec and returns its occurrences in [from, to), as
// Rule.Between does. The error is an *Error.
func (s Spec) Between(from, to time.Time, limit int) ([]Occurrence, error) {
	r, err := Parse(s)
	if err != nil {
		return nil, err
	}
	return r.Between(from, to, limit), nil
}

// Occurrence is one time that a rule gives: [Start, End) in UTC.
type Occurrence struct {
	Date       string    // the local date of the rule, which names the occurrence: 2006-01-02
	LocalStart time.Time // Start in the rule's zone
	Start, End time.Time
}

// Rule is a parsed Spec. It never changes and is safe for concurrent use.
type Rule struct {
	option  rrule.ROption
	zone    *time.Location
	without map[string]bool
	length  time.Duration
	policy  Policy
}

// Layouts of local times.
const (
	layoutTime = "2006-01-02T15:04:05"
	layoutDate = "2006-01-02"
)

// margin is further than any zone is from UTC and than any gap is wide, so that
// what is dropped as a duplicate does not depend on where a search begins.
const margin = 48 * time.Hour

// Between returns the occurrences that start in [from, to), in order and at most
// limit of them. Each local date occurs at most once.
func (r Rule) Between(from, to time.Time, limit int) []Occurrence {
	if limit <= 0 || !from.Before(to) {
		return nil
	}
	rule, err := rrule.NewRRule(r.option)
	if err != nil {
		return nil // Parse has built the same rule
	}
	var found []Occurrence
	var last Occurrence
	first, end := floatingTime(from, r.zone).Add(-margin), floatingTime(to, r.zone).Add(margin)
	for next := rule.Iterator(); len(found) < limit; {
		local, more := next()
		if !more || local.After(end) {
			break
		}
		if local.Before(first) || r.without[local.Format(layoutDate)] {
			continue
		}
		o, exists := r.occurrenceAt(local)
		if !exists || sameDay(o, last) {
			continue
		}
		last = o
		if !o.Start.Before(from) && o.Start.Before(to) {
			found = append(found, o)
		}
	}
	return found
}

// occurrenceAt maps a local time to its occurrence; false when it is dropped.
func (r Rule) occurrenceAt(local time.Time) (Occurrence, bool) {
	start, exists := resolveLocal(local, r.zone)
	if !exists && r.policy == Skip {
		return Occurrence{}, false
	}
	return Occurrence{
		Date: local.Format(layoutDate), LocalStart: start.In(r.zone), Start: start, End: start.Add(r.length),
	}, true
}

// sameDay reports whether o falls on the local date of the one before it, or
// not after it. It happens where a zone has left out a whole day, as Apia did in
// December 2011, and the occurrence of that day was shifted onto the next.
func sameDay(o, last Occurrence) bool {
	if last.Start.IsZero() {
		return false
	}
	return !o.Start.After(last.Start) || o.LocalStart.Format(layoutDate) == last.LocalStart.Format(layoutDate)
}

// floatingTime returns t's wall clock in the zone as if it were UTC.
func floatingTime(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
}
