package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // zones are read on machines that have none

	"github.com/forewarm/forewarm/internal/strictyaml"
)

// zone finds the time zone that local times are meant in: the flag, TZ, the
// machine's own, else UTC. It is always an IANA name, which schedules need.
func (a *app) zone(flag string) (*time.Location, error) {
	for _, from := range []struct{ text, source string }{{flag, "--tz"}, {a.getenv("TZ"), "TZ"}} {
		if from.text == "" {
			continue
		}
		zone, err := time.LoadLocation(strings.TrimPrefix(from.text, ":"))
		if err != nil || from.text == "Local" {
			return nil, usagef("forewarm reserve --help", "%s: there is no time zone %q; want a name such as Europe/Berlin", from.source, from.text)
		}
		return zone, nil
	}
	if link, err := os.Readlink("/etc/localtime"); err == nil {
		if _, n, ok := strings.Cut(link, "zoneinfo/"); ok {
			if zone, err := time.LoadLocation(n); err == nil {
				return zone, nil
			}
		}
	}
	return time.UTC, nil
}

var layouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}

// when reads the start of something as people write it: an RFC 3339 time, a local
// date and time, a day's name and time, a time (the next one), now, or in 2h.
func when(text string, now time.Time, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	lower := strings.ToLower(text)
	if lower == "now" {
		return now, nil
	}
	if rest, ok := strings.CutPrefix(lower, "in "); ok {
		d, err := strictyaml.ParseDuration(strings.TrimSpace(rest))
		if err != nil {
			return time.Time{}, wrongTime(text)
		}
		return now.Add(d), nil
	}
	return dayAndTime(text, lower, now.In(zone))
}

func dayAndTime(text, lower string, now time.Time) (time.Time, error) {
	day, clock, both := strings.Cut(lower, " ")
	if !both {
		day, clock = "", lower
	}
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return time.Time{}, wrongTime(text)
	}
	on := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, at.Hour(), at.Minute(), 0, 0, now.Location())
	}
	switch day {
	case "":
		if on(0).After(now) {
			return on(0), nil
		}
		return on(1), nil
	case "today":
		return on(0), nil
	case "tomorrow":
		return on(1), nil
	}
	for ahead := range 8 {
		n := strings.ToLower(on(ahead).Weekday().String())
		if (day == n || day == n[:3]) && on(ahead).After(now) {
			return on(ahead), nil
		}
	}
	return time.Time{}, wrongTime(text)
}

// past reads a time that people look back to: how long ago it was, or any time
// as when reads it. Nothing is no time.
func past(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := strictyaml.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil {
		return now.Add(-ago), nil
	}
	t, err := when(text, now, zone)
	if err != nil {
		return t, usagef("forewarm allocations list --help", "--%s %q is not a time; write '7d', '2026-11-20 09:00' or 'today 09:00'", flag, text)
	}
	return t, nil
}

func wrongTime(text string) error {
	return usagef("forewarm reserve --help", "--at %q is not a time; write 'tomorrow 09:00', 'mon 14:30', '2026-11-20 09:00' or 'in 2h'", text)
}

// every turns the words of --every into a recurrence rule.
func every(text string) (string, error) {
	switch strings.ToLower(text) {
	case "weekday", "weekdays":
		return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", nil
	case "weekend":
		return "FREQ=WEEKLY;BYDAY=SA,SU", nil
	case "day", "daily":
		return "FREQ=DAILY", nil
	case "week", "weekly":
		return "FREQ=WEEKLY", nil
	case "month", "monthly":
		return "FREQ=MONTHLY", nil
	}
	if strings.Contains(text, "=") {
		return strings.TrimPrefix(text, "RRULE:"), nil
	}
	return "", usagef("forewarm reserve --help", "--every %q is not known; want weekday, weekend, daily, weekly, monthly or a rule such as FREQ=WEEKLY;BYDAY=MO", text)
}

// read says how a one-off time was understood.
func read(start, end time.Time, zone *time.Location) string {
	s, e := start.In(zone), end.In(zone)
	until := e.Format("15:04")
	if s.YearDay() != e.YearDay() || s.Year() != e.Year() {
		until = e.Format("Mon 2 Jan 15:04")
	}
	return fmt.Sprintf("%s–%s %s", s.Format("Mon 2 Jan 2006 15:04"), until, zone)
}
