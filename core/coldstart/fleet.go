package coldstart

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
)

// fleet is the nodes of one suspend time, as a trace that can be replayed: a job
// of it is a number of nodes that were wanted at one moment, for as long as they
// were then used.
type fleet struct {
	suspend int64
	trace   backtest.Trace
	waits   [][]dependent // by job of the trace
}

// dependent is a GPU start that waited for nodes, or would have.
type dependent struct {
	start int   // index of the start
	after int64 // seconds after the nodes were wanted at which it wanted them
}

// need is a node that was wanted.
type need struct {
	group string
	at    int64 // wanted
	*use
}

// fleets builds a trace of each suspend time. Nodes that stay up are in none.
func (h *history) fleets() []*fleet {
	bySuspend := map[int64][]need{}
	groups, boots := h.groups(), h.bootsByJob()
	for node, uses := range h.demand() {
		suspend := h.assume.suspendTime(node)
		if suspend == Never {
			continue
		}
		for _, u := range uses {
			at := u.start
			for _, i := range u.jobs {
				if h.jobs[i].Start == u.start {
					at = min(at, u.start-boots[i])
				}
			}
			bySuspend[suspend] = append(bySuspend[suspend], need{groups[node], at, u})
		}
	}
	var all []*fleet
	for suspend, needs := range bySuspend {
		all = append(all, h.newFleet(suspend, needs))
	}
	slices.SortFunc(all, func(a, b *fleet) int { return cmp.Compare(a.suspend, b.suspend) })
	return all
}

// bootsByJob is how long each GPU job waited for a boot.
func (h *history) bootsByJob() map[int]int64 {
	boots := map[int]int64{}
	for _, s := range h.starts {
		boots[s.job] = s.boot
	}
	return boots
}

// newFleet makes the trace. Nodes that were wanted and given up together are one
// job of it, as a gang is.
func (h *history) newFleet(suspend int64, needs []need) *fleet {
	slices.SortFunc(needs, func(a, b need) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group), cmp.Compare(a.start, b.start),
			cmp.Compare(a.end, b.end), cmp.Compare(a.node, b.node))
	})
	f := &fleet{suspend: suspend}
	tenants := map[string]int{}
	startOf := map[int]int{} // by job of the history
	for i, s := range h.starts {
		startOf[s.job] = i
	}
	for i, n := range needs {
		if i > 0 && n.isWith(needs[i-1]) {
			f.trace.Jobs[len(f.trace.Jobs)-1].GPUs++
		} else {
			f.addJob(n, tenants)
		}
		f.addDependents(h, n, startOf)
	}
	return f
}

func (n need) isWith(o need) bool {
	return n.at == o.at && n.group == o.group && n.start == o.start && n.end == o.end
}

func (f *fleet) addJob(n need, tenants map[string]int) {
	if _, known := tenants[n.group]; !known {
		tenants[n.group] = len(tenants)
		f.trace.Tenants = append(f.trace.Tenants, n.group)
	}
	f.trace.Jobs = append(f.trace.Jobs, backtest.Job{
		Submit: n.at, Duration: max(1, n.end-n.start), GPUs: 1, Tenant: tenants[n.group],
	})
	f.waits = append(f.waits, nil)
}

// addDependents notes the GPU starts that wait when this node does: those that
// began its use, and those that came while it booted. Starts of which the history
// cannot tell how they found their nodes are left out, so that nothing is saved
// that was perhaps never lost.
func (f *fleet) addDependents(h *history, n need, startOf map[int]int) {
	last := len(f.waits) - 1
	for _, i := range n.jobs {
		j := h.jobs[i]
		s, isStart := startOf[i]
		if !isStart || j.Start-n.start > prompt || !h.period.contains(j.Start) {
			continue
		}
		after := max(0, n.start-h.starts[s].boot-n.at)
		if told := h.starts[s].warmth < Untold; told && (j.Start == n.start || h.starts[s].boot > 0) {
			f.waits[last] = append(f.waits[last], dependent{s, after})
		}
	}
}
