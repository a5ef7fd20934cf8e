package tenancy

import (
	"time"
)

// PausedUntil is until when each organization's pre-warming is paused, as the planner
// takes it.
func (p pauses) PausedUntil() map[string]time.Time {
	until := make(map[string]time.Time, len(p))
	for organization, pause := range p {
		until[organization] = pause.Until
	}
	return until
}
