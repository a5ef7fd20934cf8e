package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Ahead is work that is expected to begin at a time, and for which nothing is booked: a job that is put off, or that
// waits for others. Its nodes are made ready by then, where nobody is promised them. That is no promise.
type Ahead struct {
	For            string            // its id
	OrganizationID string            // whose it is
	Slots          []int             // where it is expected to begin
	GPUs           []int             // on each of them
	Runs           calendar.Interval // how long it may run from when it is expected to begin
}

// lingers is how long after it was to begin nodes are kept for such work: it is given them a moment after that.
const lingers = time.Minute

// planAhead asks for the nodes that work ahead will need, as their lead time comes, and keeps those that are there.
// They count against the cap on nodes that nobody waits for; what is promised is served before, and where it leaves no
// room, or where pre-warming is paused, nothing is asked for.
func planAhead(c *computation) {
	for _, w := range c.Ahead {
		if c.Pool.Observed || c.hasCome(w.Runs.Start.Add(lingers)) || !c.hasCome(w.Runs.Start.Add(-c.lead)) ||
			isPausedFor(c, w.OrganizationID) || !hasRoomAhead(c, w) {
			continue
		}
		c.requireNodes(w.Slots, ReasonAhead)
	}
}

// hasRoomAhead reports whether nothing that is booked is in the way of what work ahead would have, but for what is held
// now, which may end before it must.
func hasRoomAhead(c *computation, w Ahead) bool {
	for i, slot := range w.Slots {
		if i >= len(w.GPUs) || c.isBeyond(slot) {
			return false
		}
		if c.held[slot] {
			continue // its node is there
		}
		if !c.places.Fits(slot, w.GPUs[i], w.Runs) {
			return false
		}
	}
	return len(w.Slots) > 0
}
