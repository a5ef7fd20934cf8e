package recurrence

import (
	"fmt"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Fields of a Spec, as they are named on the wire and in Error.
const (
	FieldStart    = "start_local"
	FieldTimezone = "timezone"
	FieldRRule    = "rrule"
	FieldExDates  = "exdates"
	FieldLength   = "duration_seconds"
	FieldPolicy   = "dst_policy"
)

// Error says which field of a Spec can never be right, and why.
type Error struct {
	Field string // one of the Field constants
	Rule  string // what it must be
	Fix   string // what to write instead; may be empty
}

// Error names the field and the rule.
func (e *Error) Error() string { return e.Field + " " + e.Rule }

// Years outside of which a schedule is a mistake, and the rule would be run
// through centuries.
const (
	firstYear = 2000
	lastYear  = 2199
)

// maxLength of one occurrence.
const maxLength = 31 * 24 * time.Hour

// Parse checks a Spec and returns its rule. The error is an *Error.
func Parse(s Spec) (Rule, error) {
	zone, err := parseZone(s.Timezone)
	if err != nil {
		return Rule{}, err
	}
	start, err := parseStart(s.StartLocal)
	if err != nil {
		return Rule{}, err
	}
	option, err := parseRRule(s.RRule, start, zone)
	if err != nil {
		return Rule{}, err
	}
	without, err := parseExDates(s.ExDates)
	if err != nil {
		return Rule{}, err
	}
	if s.Policy == "" {
		s.Policy = Shift
	}
	if s.Policy != Shift && s.Policy != Skip {
		return Rule{}, &Error{FieldPolicy, fmt.Sprintf("must be shift or skip, not %q", s.Policy), "shift"}
	}
	if s.Length <= 0 || s.Length > maxLength {
		return Rule{}, &Error{Field: FieldLength, Rule: fmt.Sprintf("must be from 1 to %d seconds",
			maxLength/time.Second)}
	}
	return Rule{option: option, zone: zone, without: without, length: s.Length, policy: s.Policy}, nil
}

// parseZone refuses names that mean something else on every machine, or exist on
// some alone: the machine's own zone, the stand-in of one that was not set up,
// and the copies with other rules and with leap seconds.
func parseZone(name string) (*time.Location, error) {
	unknown := &Error{FieldTimezone, fmt.Sprintf("must be the name of an IANA time zone; %q is unknown", name),
		"Europe/Berlin"}
	switch area, _, _ := strings.Cut(name, "/"); area {
	case "", "Local", "localtime", "posixrules", "Factory", "posix", "right":
		return nil, unknown
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown
	}
	return zone, nil
}

func parseStart(text string) (time.Time, error) {
	t, err := time.Parse(layoutTime, text)
	if err != nil {
		return t, &Error{FieldStart,
			fmt.Sprintf("must be a local time without an offset, such as 2026-11-20T09:00:00; got %q", text),
			"2026-11-20T09:00:00"}
	}
	if t.Year() < firstYear || t.Year() > lastYear {
		return t, &Error{Field: FieldStart, Rule: fmt.Sprintf("must be in the years %d to %d", firstYear, lastYear)}
	}
	return t, nil
}

func parseExDates(dates []string) (map[string]bool, error) {
	without := make(map[string]bool, len(dates))
	for _, d := range dates {
		if _, err := time.Parse(layoutDate, d); err != nil {
			return nil, &Error{FieldExDates, fmt.Sprintf("must be local dates such as 2026-12-24; got %q", d),
				"2026-12-24"}
		}
		without[d] = true
	}
	return without, nil
}

func parseRRule(text string, start time.Time, zone *time.Location) (rrule.ROption, error) {
	p := parts{option: rrule.ROption{Dtstart: start, Interval: 1}, zone: zone, seen: map[string]bool{}}
	for part := range strings.SplitSeq(text, ";") {
		if err := p.readPart(part); err != nil {
			return p.option, err
		}
	}
	if err := p.checkParts(); err != nil {
		return p.option, err
	}
	if p.option.Until.IsZero() {
		p.option.Until = time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if _, err := rrule.NewRRule(p.option); err != nil {
		return p.option, badRule("cannot be read: %v", err)
	}
	return p.option, nil
}

func badRule(format string, args ...any) error {
	return &Error{FieldRRule, fmt.Sprintf(format, args...), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"}
}
