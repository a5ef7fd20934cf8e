// Package format writes values as people read them, and keeps what comes from
// elsewhere from steering the terminal.
package format

import (
	"cmp"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/phrase"
)

// Fixed renders a number that may be missing.
func Fixed(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'f', 3, 64)
}

// MarkSimulated marks what no real GPU stands behind.
func MarkSimulated(text string, simulated bool) string {
	if simulated {
		return text + " SIM"
	}
	return text
}

// GiB renders MiB as GiB.
func GiB(mib int) string { return strconv.FormatFloat(float64(mib)/1024, 'f', -1, 64) + "GiB" }

// Money renders an amount to the cent, as people write it.
func Money(m contract.Money) string {
	v, err := strconv.ParseFloat(cmp.Or(m.Amount, "0"), 64)
	switch {
	case err != nil:
		return Plain(m.Amount)
	case v > 0 && v < 0.005:
		return "<$0.01"
	default:
		return "$" + strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// Duration renders a duration without needless zeros: 2h, 90m as 1h30m, 45s.
func Duration(d time.Duration) string { return phrase.Length(d) }

// Count is a number of things, each of which has a name that takes an s.
func Count[N ~int | ~int64](n N, noun string) string { return phrase.Count(n, noun) }

// IsOrAre is the verb for a number of things.
func IsOrAre[N ~int | ~int64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Seconds renders a number of seconds as Duration does.
func Seconds(s int64) string { return Duration(time.Duration(s) * time.Second) }

// Time renders an instant so that --at reads it back; "-" when there is none.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// Percent renders a share; "-" when there is none.
func Percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return strconv.FormatFloat(*share*100, 'f', 1, 64) + "%"
}

// OrDash is a text, or "-" when it is empty.
func OrDash(s string) string { return cmp.Or(s, "-") }

// YesNo says yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Hours renders GPU-hours.
func Hours(h float64) string { return strconv.FormatFloat(h, 'f', 2, 64) }
