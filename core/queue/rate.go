package queue

import (
	"math"
	"time"
)

// Rate is how often somebody may enter: a token bucket, and a number for each day. The
// zero Rate lets everybody in.
type Rate struct {
	Every time.Duration // a token comes this often; 0 or less: no bucket
	Burst int           // tokens that a full bucket has; below 1 counts as 1
	Daily int           // entries in a day of UTC; 0 or less: no limit
}

// Entries is what somebody has used of a rate. The zero Entries is nothing. It keeps an
// instant instead of a number of tokens, so that no rounding ever gives or takes one.
type Entries struct {
	FullAt time.Time // when the bucket is full again
	Day    int64     // days since 1970 in UTC, of which Count is
	Count  int
}

// Wait is why somebody may not enter now.
type Wait string

// The reasons to wait.
const (
	WaitNone  Wait = ""
	WaitRate  Wait = "rate_limited"
	WaitDaily Wait = "daily_limit"
)

const day = 24 * 60 * 60

// Enter takes a token. When there is none, nothing is taken, and it returns why and the
// first instant at which the same would succeed. A clock that goes back gives no
// tokens, and no new day.
func (r Rate) Enter(e Entries, now time.Time) (Entries, Wait, time.Time) {
	today := max(floorDay(now), e.Day)
	if today > e.Day {
		e.Day, e.Count = today, 0
	}
	if r.Daily > 0 && e.Count >= r.Daily {
		return e, WaitDaily, time.Unix((today+1)*day, 0).UTC()
	}
	if r.Every > 0 {
		full := e.FullAt
		if full.Before(now) {
			full = now
		}
		full = full.Add(r.Every)
		room := r.Every * min(time.Duration(max(r.Burst, 1)), math.MaxInt64/r.Every)
		if opens := full.Add(-room); opens.After(now) {
			return e, WaitRate, opens
		}
		e.FullAt = full
	}
	e.Count++
	return e, WaitNone, now
}

// floorDay numbers the days of UTC, also those before 1970.
func floorDay(now time.Time) int64 {
	seconds := now.Unix()
	n := seconds / day
	if seconds%day < 0 {
		n--
	}
	return n
}
