package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
)

// timeoutFactor is how many times its p95 a boot may take.
const timeoutFactor = 5

func (c *computation) nodes() {
	usable := 0
	ordered := slices.Clone(c.Nodes)
	slices.SortFunc(ordered, func(a, b node.Node) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, n := range ordered {
		if n.State() == node.Ready || n.Coming() {
			usable++
		}
	}
	for _, n := range ordered {
		switch n.State() {
		case node.Requested:
			if !c.needed(n) && usable > c.Pool.MinNodes {
				c.do(Action{Kind: AbandonNode, Subject: n.ID, Reason: ReasonUnused})
				usable--
			}
		case node.Provisioning, node.Booting:
			c.booting(n)
		case node.Ready:
			if c.idle(n) && usable > c.Pool.MinNodes {
				c.do(Action{Kind: DrainNode, Subject: n.ID, Reason: ReasonIdle})
				usable--
			}
		case node.Draining:
			if !c.held[n.Slot] {
				c.do(Action{Kind: RetireNode, Subject: n.ID, Reason: ReasonEmpty})
			}
		case node.Lost:
			c.do(Action{Kind: RetireNode, Subject: n.ID, Reason: ReasonNodeLost})
		case node.Quarantined:
			if !c.held[n.Slot] {
				c.do(Action{Kind: RetireNode, Subject: n.ID, Reason: ReasonUnhealthy})
			}
		}
	}
	c.minimum(usable)
}

func (c *computation) booting(n node.Node) {
	limit := max(c.policy.BootTimeout, timeoutFactor*c.Boot.P95())
	if n.State() == node.Booting && c.reached(n.RequestedAt.Add(limit)) {
		c.do(Action{Kind: RetireNode, Subject: n.ID, Reason: ReasonBootTimeout})
	}
}

// needed reports whether something uses the node's slot now or will so soon
// that removing and re-making the node would cost more than keeping it: a gap
// shorter than a boot is always held through (the oracle of the benchmark does
// the same).
func (c *computation) needed(n node.Node) bool {
	if c.wanted[n.Slot] {
		return true
	}
	start, ok := c.slots.NextUse(n.Slot, c.now)
	if !ok {
		return false
	}
	if due := start.Add(-c.lead - c.Boot.P50()); due.After(c.now) {
		c.at(due)
		return false
	}
	return true
}

func (c *computation) idle(n node.Node) bool {
	if c.needed(n) {
		return false
	}
	return c.reached(n.IdleSince.Add(c.Pool.Timers.IdleRelease))
}

// minimum asks for the nodes that a pool keeps at all times; those that were
// just asked for count.
func (c *computation) minimum(usable int) {
	for _, a := range c.actions {
		if a.Kind == BootNode {
			usable++
		}
	}
	for slot := 0; slot < c.Pool.MaxNodes && usable < c.Pool.MinNodes; slot++ {
		if c.slotStanding(slot) != missing || c.wanted[slot] {
			continue
		}
		if !c.reached(c.BlockedUntil) {
			return
		}
		c.do(Action{Kind: BootNode, Slot: slot, Reason: ReasonMinimum})
		usable++
	}
}

// Lead returns how long before its start a promise of the pool begins to warm.
func Lead(b BootTimes, p Policy) time.Duration { return b.P95() + p.WithDefaults().Guard }
