package recurrence

import (
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

var frequencies = map[string]rrule.Frequency{"DAILY": rrule.DAILY, "WEEKLY": rrule.WEEKLY, "MONTHLY": rrule.MONTHLY}

var weekdays = map[string]rrule.Weekday{
	"MO": rrule.MO, "TU": rrule.TU, "WE": rrule.WE, "TH": rrule.TH, "FR": rrule.FR, "SA": rrule.SA, "SU": rrule.SU,
}

// parts reads the parts of an RRULE one by one.
type parts struct {
	option rrule.ROption
	zone   *time.Location
	seen   map[string]bool
	nth    bool // BYDAY had a number
}

func (p *parts) readPart(part string) error {
	name, value, ok := strings.Cut(part, "=")
	if !ok || value == "" {
		return badRule("must be parts such as FREQ=DAILY joined by semicolons; got %q", part)
	}
	if p.seen[name] {
		return badRule("has %s twice", name)
	}
	p.seen[name] = true
	switch name {
	case "FREQ":
		return p.parseFrequency(value)
	case "INTERVAL":
		return p.parseNumber(&p.option.Interval, name, value, 1000)
	case "COUNT":
		return p.parseNumber(&p.option.Count, name, value, 10_000)
	case "UNTIL":
		return p.parseUntil(value)
	case "BYDAY":
		return p.byDay(value)
	case "BYMONTHDAY":
		return p.byMonthDay(value)
	}
	return badRule("supports FREQ, INTERVAL, BYDAY, BYMONTHDAY, COUNT and UNTIL, not %q", name)
}

// checkParts looks at what only makes sense together.
func (p *parts) checkParts() error {
	weekly := p.option.Freq == rrule.WEEKLY
	switch {
	case !p.seen["FREQ"]:
		return badRule("must have FREQ=DAILY, WEEKLY or MONTHLY")
	case p.seen["COUNT"] && p.seen["UNTIL"]:
		return badRule("may have COUNT or UNTIL, not both")
	case p.nth && p.option.Freq != rrule.MONTHLY:
		return badRule("may number the days of BYDAY only with FREQ=MONTHLY")
	case weekly && p.seen["BYMONTHDAY"]:
		return badRule("may not have BYMONTHDAY with FREQ=WEEKLY")
	}
	return nil
}

func (p *parts) parseFrequency(value string) error {
	f, ok := frequencies[value]
	if !ok {
		return badRule("must have FREQ=DAILY, WEEKLY or MONTHLY; got %q", value)
	}
	p.option.Freq = f
	return nil
}

func (p *parts) parseNumber(into *int, name, value string, most int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return badRule("must have %s from 1 to %d; got %q", name, most, value)
	}
	*into = n
	return nil
}

// parseUntil reads a date, which means the whole of that day, a local time, or a UTC
// time, which is put on the zone's clock.
func (p *parts) parseUntil(value string) error {
	for _, layout := range []string{"20060102T150405Z", "20060102T150405", "20060102"} {
		t, err := time.Parse(layout, value)
		if err != nil {
			continue
		}
		switch layout {
		case "20060102":
			t = t.Add(24*time.Hour - time.Second)
		case "20060102T150405Z":
			t = floatingTime(t, p.zone)
		}
		p.option.Until = t
		return nil
	}
	return badRule("must have UNTIL as 20261231, 20261231T235959 or 20261231T235959Z; got %q", value)
}

func (p *parts) byDay(value string) error {
	for item := range strings.SplitSeq(value, ",") {
		if len(item) < 2 {
			return badRule("must have BYDAY from MO, TU, WE, TH, FR, SA, SU; got %q", item)
		}
		number, name := item[:len(item)-2], item[len(item)-2:]
		day, ok := weekdays[name]
		if !ok {
			return badRule("must have BYDAY from MO, TU, WE, TH, FR, SA, SU; got %q", item)
		}
		if number != "" {
			n, err := strconv.Atoi(number)
			if err != nil || n == 0 || n < -5 || n > 5 {
				return badRule("may number a day of BYDAY from -5 to 5 without 0; got %q", item)
			}
			day, p.nth = day.Nth(n), true
		}
		p.option.Byweekday = append(p.option.Byweekday, day)
	}
	return nil
}

func (p *parts) byMonthDay(value string) error {
	for item := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(item)
		if err != nil || n == 0 || n < -31 || n > 31 {
			return badRule("must have BYMONTHDAY from 1 to 31, or -1 to -31 from the end; got %q", item)
		}
		p.option.Bymonthday = append(p.option.Bymonthday, n)
	}
	return nil
}
