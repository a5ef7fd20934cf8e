package recurrence

import "time"

// offset is a stretch of time in which a zone's distance from UTC is the same.
type offset struct {
	from  time.Time // zero: since ever
	ahead time.Duration
}

// Fold says how often clocks in a zone show a local time.
type Fold int

// The folds.
const (
	Once  Fold = iota
	Never      // it lies in a gap: the instant is later by the gap
	Twice      // the instant is the first of the two
)

// Resolve returns the instant of a local time, given as if it were UTC, in the
// zone: of a time that comes twice the first, as RFC 5545 says, and of one that
// never comes the time moved forward by the gap.
func Resolve(local time.Time, zone *time.Location) (time.Time, Fold) {
	at, exists := resolveLocal(local, zone)
	if !exists {
		return at, Never
	}
	for _, o := range offsetsAround(local, zone) {
		again := local.Add(-o.ahead)
		if _, ahead := again.In(zone).Zone(); time.Duration(ahead)*time.Second == o.ahead && again.After(at) {
			return at, Twice
		}
	}
	return at, Once
}

// resolveLocal returns the first instant at which clocks in the zone show the local
// time (given as if it were UTC). When they never do, it returns false and the
// instant at which they would have, had they not been put forward: on the new
// clock that is the local time plus the gap.
func resolveLocal(local time.Time, zone *time.Location) (time.Time, bool) {
	offsets := offsetsAround(local, zone)
	for _, o := range offsets {
		at := local.Add(-o.ahead)
		if _, ahead := at.In(zone).Zone(); time.Duration(ahead)*time.Second == o.ahead {
			return at, true
		}
	}
	for i := 1; i < len(offsets); i++ {
		before, after := offsets[i-1], offsets[i]
		if gap := local.Add(-before.ahead); !gap.Before(after.from) && local.Add(-after.ahead).Before(after.from) {
			return gap, false
		}
	}
	return local.Add(-offsets[0].ahead), false
}

// offsetsAround lists the zone's offsets near the local time, the earliest first.
func offsetsAround(local time.Time, zone *time.Location) []offset {
	var offsets []offset
	end := local.Add(margin)
	for t := local.Add(-margin).In(zone); ; {
		_, ahead := t.Zone()
		from, until := t.ZoneBounds()
		offsets = append(offsets, offset{from, time.Duration(ahead) * time.Second})
		if until.IsZero() || until.After(end) {
			return offsets
		}
		t = until
	}
}
