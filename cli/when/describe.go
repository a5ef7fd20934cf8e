package when

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger/recurrence"
)

// DescribeWindow says how a one-off time was understood.
func DescribeWindow(start, end time.Time, zone *time.Location) string {
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

// FoldWarning tells of a time on the wall that clocks show twice or never; empty: once.
func (m Moment) FoldWarning(zone *time.Location) string {
	wall, date := m.Wall.Format("15:04"), m.Wall.Format("2 Jan 2006")
	switch m.fold {
	case recurrence.Twice:
		return fmt.Sprintf("%s comes twice on %s, because clocks go back: this is the first, at %s; for the second "+
			"write it with its offset", wall, date,
			m.At.In(zone).Format(time.RFC3339))
	case recurrence.Never:
		return fmt.Sprintf("%s does not come on %s, because clocks go forward: this is %s instead", wall, date,
			m.At.In(zone).Format(time.RFC3339))
	default:
		return ""
	}
}

// DescribeBounds says how the bounds of a flexible time were understood; a zero end is
// none.
func DescribeBounds(from, to time.Time, zone *time.Location) string {
	text := "from " + from.In(zone).Format("Mon 2 Jan 2006 15:04")
	if !to.IsZero() {
		text += " to " + to.In(zone).Format("Mon 2 Jan 2006 15:04")
	}
	return text + " " + zone.String()
}
