package quota

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// profile is a step function of a Vector over time.
type profile [resources]calendar.Profile

func (p *profile) Add(iv calendar.Interval, v Vector) {
	for r := range p {
		p[r].Add(iv, int(v[r]))
	}
}

func (p *profile) At(t time.Time) (v Vector) {
	for r := range p {
		v[r] = int64(p[r].At(t))
	}
	return v
}

func (p *profile) Peak(iv calendar.Interval) (v Vector) {
	for r := range p {
		v[r] = int64(p[r].Peak(iv))
	}
	return v
}

func (p *profile) Next(t time.Time) (time.Time, bool) {
	var first time.Time
	found := false
	for r := range p {
		for _, at := range p[r].Changes() {
			if at.After(t) {
				if !found || at.Before(first) {
					first, found = at, true
				}
				break
			}
		}
	}
	return first, found
}
