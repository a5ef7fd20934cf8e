package telemetry

import (
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/activity"
)

// usedAfter is when each GPU was seen to do something last, by UUID, after a look at a time;
// one that has done nothing since it was first looked at: then. A GPU that does not tell its
// utilization is not in it, and what is simulated does nothing.
func usedAfter(before map[string]time.Time, l contract.NodeLook, at time.Time) map[string]time.Time {
	after := make(map[string]time.Time, len(l.GPUs))
	for _, g := range telling(l) {
		last, known := before[g.UUID]
		if !known || *g.Utilization > 0 {
			last = at
		}
		after[g.UUID] = last
	}
	return after
}

// telling are the GPUs of a look that tell whether they do something. Simulated ones do what runs on them where the
// daemon takes holders' work; elsewhere their figures mean nothing.
func telling(l contract.NodeLook) []contract.LookGPU {
	if l.Source == "simulated" && l.Isolation == "" {
		return nil
	}
	var all []contract.LookGPU
	for _, g := range l.GPUs {
		if g.Utilization != nil && !g.Lost {
			all = append(all, g)
		}
	}
	return all
}

// endsIdleness reports whether a GPU does something in a look that was idle before. The ledger
// learns that at once: somebody may be about to end what holds the GPU.
func endsIdleness(used map[string]time.Time, l contract.NodeLook, now time.Time) bool {
	for _, g := range telling(l) {
		if last, known := used[g.UUID]; known && *g.Utilization > 0 && now.Sub(last) >= activity.Grain {
			return true
		}
	}
	return false
}

// activityIn is what the GPUs of a node did since this process last wrote of them, with the
// look of a report.
func (h *Hub) activityIn(nodeID string, b contract.Heartbeat) []activity.Look {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.nodes[nodeID]
	var all []activity.Look
	for _, g := range telling(b.Look) {
		used := *g.Utilization > 0 || e != nil && e.direct && e.used[g.UUID].After(e.written)
		all = append(all, activity.Look{GPU: g.UUID, Used: used})
	}
	return all
}
