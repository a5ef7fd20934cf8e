package plan_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
)

func (h *history) breakNode() {
	var ready []string
	for _, n := range h.Nodes {
		if n.State() == node.Ready {
			ready = append(ready, n.ID)
		}
	}
	h.pickOne("broken", ready, func(id string) {
		h.applyToNode(id, rapid.SampledFrom([]node.Event{node.Lose, node.Quarantine, node.Drain}).Draw(h.r, "how"))
	})
}

// advanceProvider does what is due of the provider's work, and says when more will be.
// A boot now and then takes longer than the planner waits.
func (h *history) advanceProvider() (next time.Time) {
	for _, n := range h.Nodes {
		if !n.Coming() && n.State() != node.Deprovisioning {
			continue
		}
		key := n.ID + string(n.State())
		if _, ok := h.due[key]; !ok {
			h.due[key] = h.now.Add(h.drawMinutes("the provider takes", 0, 8) + h.drawMinutes("or hangs", 0, 1)*120)
		}
		if h.due[key].After(h.now) {
			next = earlier(next, h.due[key])
			continue
		}
		h.advanceNode(n)
		return h.advanceProvider()
	}
	return next
}

func (h *history) advanceNode(n node.Node) {
	switch n.State() {
	case node.Requested:
		h.applyToNode(n.ID, node.Provision)
	case node.Provisioning:
		if rapid.IntRange(0, 4).Draw(h.r, "refused") == 0 {
			clear(h.said)
			h.applyToNode(n.ID, node.Refuse)
			h.Supply.BlockedUntil = h.now.Add(h.drawMinutes("blocked", 1, 30))
			return
		}
		h.applyToNode(n.ID, node.Boot)
	case node.Booting:
		h.forgetClaims(plan.StepWarm) // its time is learned
		h.applyToNode(n.ID, node.BecomeReady)
		h.Boot = h.Boot.Learn(h.now.Sub(n.RequestedAt))
	default:
		h.applyToNode(n.ID, node.Confirm)
	}
}

// obligingProvider boots in exactly the learned time and removes at once.
func (h *history) obligingProvider() {
	for _, n := range h.liveSnapshot().Nodes {
		switch {
		case n.State() == node.Requested:
			h.applyToNode(n.ID, node.Provision, node.Boot)
		case n.State() == node.Booting && !n.RequestedAt.Add(h.Boot.P95()).After(h.now):
			h.applyToNode(n.ID, node.BecomeReady)
		case n.State() == node.Deprovisioning:
			h.applyToNode(n.ID, node.Confirm)
		}
	}
}
