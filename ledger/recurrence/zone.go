package recurrence

import "time"

// offset is a stretch of time in which a zone's distance from UTC is the same.
type offset struct {
	from  time.Time // zero: since ever
	ahead time.Duration
}

// resolve returns the first instant at which clocks in the zone show the local
// time (given as if it were UTC). When they never do, it returns false and the
// instant at which they would have, had they not been put forward: on the new
// clock that is the local time plus the gap.
func resolve(local time.Time, zone *time.Location) (time.Time, bool) {
	offsets := around(local, zone)
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

// around lists the zone's offsets near the local time, the earliest first.
func around(local time.Time, zone *time.Location) []offset {
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
