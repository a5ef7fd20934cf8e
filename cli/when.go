package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // zones are read on machines that have none

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// findZone finds the time zone that local times are meant in: the flag, TZ, the
// machine's own, else UTC. It is always an IANA name, which schedules need.
func (a *app) findZone(cmd *cobra.Command, flag string) (*time.Location, error) {
	for _, from := range []struct{ text, source string }{{flag, "--tz"}, {a.getenv("TZ"), "TZ"}} {
		if from.text == "" {
			continue
		}
		zone, err := time.LoadLocation(strings.TrimPrefix(from.text, ":"))
		if err != nil || from.text == "Local" {
			return nil, usageErrorf(cmd.CommandPath()+" --help",
				"%s: there is no time zone %q; want a name such as Europe/Berlin", from.source, from.text)
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

// moment is a time that somebody wrote.
type moment struct {
	at   time.Time
	wall time.Time       // as the clock on the wall shows it, as if in UTC
	fold recurrence.Fold // of wall
}

// onWall is a time on the clock in the zone.
func onWall(wall time.Time, zone *time.Location) moment {
	at, fold := recurrence.Resolve(wall, zone)
	return moment{at: at, wall: wall, fold: fold}
}

// momentAt is a time that does not depend on a zone.
func momentAt(t time.Time, zone *time.Location) moment {
	l := t.In(zone)
	return moment{at: t, wall: time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(),
		time.UTC)}
}

// parseTime reads an instant as people write it; see parseMoment.
func parseTime(text string, now time.Time, zone *time.Location) (time.Time, error) {
	m, err := parseMoment(text, now, zone)
	return m.at, err
}

// parseMoment reads the start of something as people write it: an RFC 3339 time, a local
// date and time, a day's name and time, a time (the next one), now, or in 2h. Of a
// local time that comes twice it is the first, as in schedules.
func parseMoment(text string, now time.Time, zone *time.Location) (moment, error) {
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
			return moment{}, wrongTime(text)
		}
		return momentAt(now.Add(d), zone), nil
	}
	return dayAndTime(text, lower, now, zone)
}

func dayAndTime(text, lower string, now time.Time, zone *time.Location) (moment, error) {
	day, clock, both := strings.Cut(lower, " ")
	if !both {
		day, clock = "", lower
	}
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return moment{}, wrongTime(text)
	}
	today := now.In(zone)
	on := func(days int) moment {
		return onWall(time.Date(today.Year(), today.Month(), today.Day()+days, at.Hour(), at.Minute(), 0, 0, time.UTC),
			zone)
	}
	switch day {
	case "":
		if on(0).at.After(now) {
			return on(0), nil
		}
		return on(1), nil
	case "today":
		return on(0), nil
	case "tomorrow":
		return on(1), nil
	}
	for ahead := range 8 {
		n := strings.ToLower(on(ahead).wall.Weekday().String())
		if (day == n || day == n[:3]) && on(ahead).at.After(now) {
			return on(ahead), nil
		}
	}
	return moment{}, wrongTime(text)
}

// parsePast reads a time that people look back to: how long ago it was, or any time
// as when reads it. Nothing is no time.
func parsePast(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := strictyaml.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil {
		return now.Add(-ago), nil
	}
	t, err := parseTime(text, now, zone)
	if err != nil {
		return t, usageErrorf("forewarm allocations list --help",
			"--%s %q is not a time; write '7d', '2026-11-20 09:00' or 'today 09:00'", flag, text)
	}
	return t, nil
}

// notATime says that a text is no time. blame says which flag had it.
type notATime struct{ text string }

// Error repeats the text.
func (e *notATime) Error() string { return fmt.Sprintf("%q is not a time", e.text) }

func wrongTime(text string) error { return &notATime{text} }

// blameFlag names the flag whose value is not a time.
func blameFlag(cmd *cobra.Command, flag string, err error) error {
	wrong, ok := errors.AsType[*notATime](err)
	if !ok {
		return err
	}
	return usageErrorf(cmd.CommandPath()+" --help",
		"--%s %q is not a time; write 'tomorrow 09:00', 'mon 14:30', '2026-11-20 09:00' or 'in 2h'", flag, wrong.text)
}

// parseEvery turns the words of --every into a recurrence rule.
func parseEvery(text string) (string, error) {
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
	return "", usageErrorf("forewarm reserve --help",
		"--every %q is not known; want weekday, weekend, daily, weekly, monthly or a rule such as FREQ=WEEKLY;BYDAY=MO",
		text)
}

// describeWindow says how a one-off time was understood.
func describeWindow(start, end time.Time, zone *time.Location) string {
	s, e := start.In(zone), end.In(zone)
	until := e.Format("15:04")
	switch {
	case s.Year() != e.Year():
		until = e.Format("Mon 2 Jan 2006 15:04")
	case s.YearDay() != e.YearDay():
		until = e.Format("Mon 2 Jan 15:04")
	}
	if offsetText(s) != offsetText(e) {
		until += e.Format(" (UTC-07:00)")
	}
	return fmt.Sprintf("%s–%s %s%s", s.Format("Mon 2 Jan 2006 15:04"), until, zone, offsetText(s))
}

// offsetText is how far a time is from UTC, where that is not what its zone's name says.
func offsetText(t time.Time) string {
	if t.Location() == time.UTC {
		return ""
	}
	return t.Format(" (UTC-07:00)")
}

// foldWarning tells of a time on the wall that clocks show twice or never; empty: once.
func (m moment) foldWarning(zone *time.Location) string {
	wall, date := m.wall.Format("15:04"), m.wall.Format("2 Jan 2006")
	switch m.fold {
	case recurrence.Twice:
		return fmt.Sprintf("%s comes twice on %s, because clocks go back: this is the first, at %s; for the second "+
			"write it with its offset", wall, date,
			m.at.In(zone).Format(time.RFC3339))
	case recurrence.Never:
		return fmt.Sprintf("%s does not come on %s, because clocks go forward: this is %s instead", wall, date,
			m.at.In(zone).Format(time.RFC3339))
	default:
		return ""
	}
}

// describeBounds says how the bounds of a flexible time were understood; a zero end is
// none.
func describeBounds(from, to time.Time, zone *time.Location) string {
	text := "from " + from.In(zone).Format("Mon 2 Jan 2006 15:04")
	if !to.IsZero() {
		text += " to " + to.In(zone).Format("Mon 2 Jan 2006 15:04")
	}
	return text + " " + zone.String()
}
