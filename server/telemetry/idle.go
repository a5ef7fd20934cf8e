package telemetry

import (
	"time"

	"github.com/forewarm/forewarm/contract"
)

// usedAfter is when each GPU was seen to do something last, by UUID, after a look at a time;
// one that has done nothing since it was first looked at: then. A GPU that does not tell its
// utilization is not in it, and what is simulated does nothing.
func usedAfter(before map[string]time.Time, l contract.NodeLook, at time.Time) map[string]time.Time {
	if l.Source == "simulated" {
		return nil
	}
	after := make(map[string]time.Time, len(l.GPUs))
	for _, g := range l.GPUs {
		if g.Utilization == nil {
			continue
		}
		last, known := before[g.UUID]
		if !known || *g.Utilization > 0 {
			last = at
		}
		after[g.UUID] = last
	}
	return after
}

// IdleSince returns when the last of some GPUs of a node did something, as far as this process
// has heard; false where it cannot be told: the daemon does not report, or of a GPU it does
// not say what it does.
func (h *Hub) IdleSince(nodeID string, uuids []string) (time.Time, bool) {
	if _, state := h.Of(nodeID); state != Online || len(uuids) == 0 {
		return time.Time{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var latest time.Time
	for _, uuid := range uuids {
		last, known := h.nodes[nodeID].used[uuid]
		if !known {
			return time.Time{}, false
		}
		if last.After(latest) {
			latest = last
		}
	}
	return latest, true
}
