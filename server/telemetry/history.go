package telemetry

import (
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// History is what this process was told of a GPU in the last day.
type History struct {
	// Steps are in order, without a gap: one in which nothing came has no figures. They do not begin before
	// anything was told.
	Steps []contract.GPUHistoryStep
	// Complete says that something came in each five minutes that were asked for.
	Complete bool
	// Elsewhere says that its node's daemon told another server something, longer than Silence after it told this one.
	Elsewhere bool
}

// mostRings is the most GPUs of a node of which a day is kept: as many as a look may have.
const mostRings = 64

// past is the last day of each GPU of a node, by UUID. A GPU is in it once something was told of it.
type past map[string]*ring

// add adds a look at a time. Of GPUs that are not in it any more nothing is kept where there are too many.
func (p past) add(l contract.NodeLook, now time.Time) {
	for _, g := range l.GPUs {
		if g.Lost || g.Utilization == nil && g.MemoryUsedMiB == nil && g.Temperature == nil && g.Power == nil {
			continue
		}
		if p[g.UUID] == nil {
			p[g.UUID] = newRing(now)
		}
		p[g.UUID].add(g.GPUTelemetry, now)
	}
	if len(p) > mostRings {
		maps.DeleteFunc(p, func(uuid string, _ *ring) bool {
			return !slices.ContainsFunc(l.GPUs, func(g contract.LookGPU) bool { return g.UUID == uuid })
		})
	}
}

// History returns what this process was told of a GPU, by the UUID that its daemon says, in the last day from a time
// on, in steps of a length, which is a multiple of five minutes. Five minutes that began before that time
// are left out.
func (h *Hub) History(nodeID, uuid string, from time.Time, step time.Duration) History {
	now, begin := h.clock.Now(), numberFrom(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	out := History{Steps: []contract.GPUHistoryStep{}, Complete: begin >= numberOf(now)}
	e := h.nodes[nodeID]
	if e == nil {
		return out
	}
	here := e.told
	if here.Before(h.began) {
		here = h.began // the process before this one was told the rest
	}
	out.Elsewhere = e.At.Sub(here) > Silence
	if r := e.past[uuid]; r != nil {
		kept, first, whole := r.read(begin, now)
		out.Steps, out.Complete = steps(kept, first, int64(step/bucketLength)), whole
	}
	return out
}
