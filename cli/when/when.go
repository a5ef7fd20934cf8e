// Package when reads times as people write them, and says how it read them.
package when

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

var layouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
	"2006-01-02"}

// Moment is a time that somebody wrote.
type Moment struct {
	At   time.Time
	Wall time.Time       // as the clock on the wall shows it, as if in UTC
	fold recurrence.Fold // of wall
}

// onWall is a time on the clock in the zone.
func onWall(wall time.Time, zone *time.Location) Moment {
	at, fold := recurrence.Resolve(wall, zone)
	return Moment{At: at, Wall: wall, fold: fold}
}

// momentAt is a time that does not depend on a zone.
func momentAt(t time.Time, zone *time.Location) Moment {
	l := t.In(zone)
	return Moment{At: t, Wall: time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(),
		time.UTC)}
}

// Parse reads an instant as people write it; see ParseMoment.
func Parse(text string, now time.Time, zone *time.Location) (time.Time, error) {
	m, err := ParseMoment(text, now, zone)
	return m.At, err
}

// ParseMoment reads the start of something as people write it: an RFC 3339 time, a local
// date and time, a date (its midnight), a day's name and time, a time (the next one), now, or in 2h. Of a
// local time that comes twice it is the first, as in schedules.
func ParseMoment(text string, now time.Time, zone *time.Location) (Moment, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return momentAt(t, zone), nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return onWall(t, zone), nil
		}
	}
	lower := strings.ToLower(text)
	if lower == "now" {
		return momentAt(now, zone), nil
	}
	if rest, ok := strings.CutPrefix(lower, "in "); ok {
		d, err := strictyaml.ParseDuration(strings.TrimSpace(rest))
		if err != nil {
			return Moment{}, wrongTime(text)
		}
		return momentAt(now.Add(d), zone), nil
	}
	return dayAndTime(text, lower, now, zone)
}

func dayAndTime(text, lower string, now time.Time, zone *time.Location) (Moment, error) {
	day, clock, both := strings.Cut(lower, " ")
	if !both {
		day, clock = "", lower
	}
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return Moment{}, wrongTime(text)
	}
	today := now.In(zone)
	on := func(days int) Moment {
		return onWall(time.Date(today.Year(), today.Month(), today.Day()+days, at.Hour(), at.Minute(), 0, 0, time.UTC),
			zone)
	}
	switch day {
	case "":
		if on(0).At.After(now) {
			return on(0), nil
		}
		return on(1), nil
	case "today":
		return on(0), nil
	case "tomorrow":
		return on(1), nil
	}
	for ahead := range 8 {
		n := strings.ToLower(on(ahead).Wall.Weekday().String())
		if (day == n || day == n[:3]) && on(ahead).At.After(now) {
			return on(ahead), nil
		}
	}
	return Moment{}, wrongTime(text)
}

// ParsePast reads a time that people look back to: how long ago it was, or any time
// as when reads it. Nothing is no time.
func ParsePast(cmd *cobra.Command, flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := strictyaml.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil {
		return now.Add(-ago), nil
	}
	t, err := Parse(text, now, zone)
	if err != nil {
		return t, exit.UsageErrorf(cmd.CommandPath()+" --help",
			"--%s %q is not a time; write '7d', '2026-11-20', '2026-11-20 09:00' or 'today 09:00'", flag, text)
	}
	return t, nil
}

// notATime says that a text is no time. blame says which flag had it.
type notATime struct{ text string }

// Error repeats the text.
func (e *notATime) Error() string { return fmt.Sprintf("%q is not a time", e.text) }

func wrongTime(text string) error { return &notATime{text} }

// BlameFlag names the flag whose value is not a time.
func BlameFlag(cmd *cobra.Command, flag string, err error) error {
	wrong, ok := errors.AsType[*notATime](err)
	if !ok {
		return err
	}
	return exit.UsageErrorf(cmd.CommandPath()+" --help",
		"--%s %q is not a time; write 'tomorrow 09:00', 'mon 14:30', '2026-11-20', '2026-11-20 09:00' or 'in 2h'", flag,
		wrong.text)
}

// ParseEvery turns the words of --every into a recurrence rule.
func ParseEvery(text string) (string, error) {
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
	return "", exit.UsageErrorf("forewarm reserve --help",
		"--every %q is not known; want weekday, weekend, daily, weekly, monthly or a rule such as FREQ=WEEKLY;BYDAY=MO",
		text)
}
