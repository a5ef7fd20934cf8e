// Package phrase writes counts and lengths of time for people to read.
package phrase

import (
	"strconv"
	"strings"
	"time"
)

// Count is a number of things, each of which has a name that takes an s: 1 node,
// 2 nodes.
func Count[N ~int | ~int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}

// Span writes about how long something is, for people: 20s, 5m12s, 56h20m, 7d, 30d1h.
func Span(d time.Duration) string {
	day := 24 * time.Hour
	if d >= time.Hour {
		d = d.Round(time.Minute)
	}
	if d >= 7*day {
		d = d.Round(time.Hour)
	}
	if d < 7*day || d%day == 0 {
		return Length(d)
	}
	return Length(d.Truncate(day)) + Length(d%day)
}

// Length writes how long something is to the second, for people and as the
// command line takes it: 1h30m, 45s, 7d. Less than a second has one decimal.
func Length(d time.Duration) string {
	if day := 24 * time.Hour; d >= 2*day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	if d < time.Second && d > -time.Second {
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'g', 2, 64) + "s"
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
