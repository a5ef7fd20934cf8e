package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
)

// timeoutFactor is how many times its p95 a boot may take.
const timeoutFactor = 5

func planNodes(c *computation) {
	usable := 0
	ordered := make([]*node.Node, 0, len(c.Nodes))
	for _, n := range c.bySlot {
		if n == nil {
			continue
		}
		if !c.isBeyond(n.Slot) && (n.State() == node.Ready || n.Coming()) {
			usable++
		}
		ordered = append(ordered, n)
	}
	for _, n := range ordered {
		if c.isBeyond(n.Slot) {
			leaveSlot(c, n)
		}
		switch n.State() {
		case node.Requested:
			if c.isBeyond(n.Slot) {
				continue
			}
			f := Facts{State: string(n.State()), Needed: isNeeded(c, n), Usable: usable, Minimum: c.Pool.MinNodes}
			if c.judge(Action{Kind: AbandonNode, Subject: n.ID, Facts: f}) {
				usable--
			}
		case node.Booting, node.Draining, node.Lost, node.Quarantined:
			retireNode(c, n)
		}
	}
	usable -= drainIdleNodes(c, ordered, usable)
	requestMinimum(c, usable)
}

// leaveSlot gives up a node on a slot that the pool no longer has. What runs on it
// runs on until it ends.
func leaveSlot(c *computation, n *node.Node) {
	f := Facts{State: string(n.State()), Outside: true}
	switch n.State() {
	case node.Requested:
		c.judge(Action{Kind: AbandonNode, Subject: n.ID, Facts: f})
	case node.Ready:
		f.Recent, f.Cap = c.Supply.Removed.Sum(c.policy.RemoveWindow, c.now)+c.removedCount,
			c.policy.removalCap(len(c.Nodes))
		if c.judge(Action{Kind: DrainNode, Subject: n.ID, Facts: f}) {
			c.removedCount++
			return
		}
		c.wakeAt(c.now.Add(c.policy.RemoveWindow / 4))
	}
}

// retireNode removes what is no longer of use. In an observed pool that ends the keeping
// alone, so that it need not wait for the work on the node. What is still being cleaned is in
// use: the machine may be one that the next node is made of, and its daemon cleans it.
func retireNode(c *computation, n *node.Node) {
	cleaned := slices.ContainsFunc(c.Cleaning, func(x learned.Cleaning) bool { return x.Awaits(n.ID) })
	f := Facts{State: string(n.State()), Held: (c.held[n.Slot] || cleaned) && !c.Pool.Observed, Kept: n.Kept(),
		Lead: c.boot95}
	if n.State() == node.Booting {
		f.Due = n.RequestedAt.Add(max(c.policy.BootTimeout, timeoutFactor*c.boot95))
		c.wakeAt(f.Due)
	}
	c.judge(Action{Kind: RetireNode, Subject: n.ID, Facts: f})
}

// isNeeded reports whether something uses the node's slot now or will so soon
// that removing and re-making the node would cost more than keeping it: a gap
// shorter than a boot is always held through (the oracle of the benchmark does
// the same).
func isNeeded(c *computation, n *node.Node) bool {
	if c.wanted[n.Slot] {
		return true
	}
	start := c.firstUse[n.Slot]
	return !start.IsZero() && c.hasCome(start.Add(-c.lead-c.boot50))
}

// drainIdleNodes gives up the ready nodes that are not worth keeping, the dearest first,
// and returns how many.
func drainIdleNodes(c *computation, ordered []*node.Node, usable int) int {
	var idle []*node.Node
	for _, n := range ordered {
		if n.State() == node.Ready && !c.isBeyond(n.Slot) && !isNeeded(c, n) {
			idle = append(idle, n)
		}
	}
	if len(idle) == 0 {
		return 0
	}
	// The cheapest to keep is the one that is paid for longest; of equal ones the
	// lowest is taken first, as placing does.
	slices.SortFunc(idle, func(a, b *node.Node) int {
		return cmp.Or(cmp.Compare(prepaidTime(c, b), prepaidTime(c, a)), cmp.Compare(a.Slot, b.Slot))
	})
	idle = reserveIdle(c, idle)
	c.idleNodes, c.usableCount = idle, usable
	gone := 0
	for ahead, n := range slices.Backward(idle) {
		if drainUnlessKept(c, n, ahead, usable-gone) {
			gone++
		}
	}
	return gone
}

func prepaidTime(c *computation, n *node.Node) time.Duration {
	return c.Billing.prepaidTime(c.now.Sub(calendar.Later(n.RequestedAt, n.BootingAt)))
}

// untilUncovered is how long until the next promise that no node waits for; 0 is none.
func untilUncovered(c *computation) time.Duration {
	if c.nextUncovered.IsZero() {
		return 0
	}
	return c.nextUncovered.Sub(c.now)
}

// drainUnlessKept decides about one idle node, before which others would be taken.
func drainUnlessKept(c *computation, n *node.Node, ahead, usable int) bool {
	idle := max(0, c.now.Sub(n.IdleSince))
	latest := n.IdleSince.Add(c.Pool.Timers.IdleRelease)
	k := KeepFacts{
		Price: c.Pool.Price, Wait: money.MicroUSD(float64(c.Pool.Price) * c.policy.WaitWorth), Boot: c.boot50,
		Idle:    idle,
		Latest:  c.Pool.Timers.IdleRelease,
		Prepaid: prepaidTime(c, n), Booked: untilUncovered(c), Expected: c.Arrivals.Expected(c.now, latest),
		Ahead:   ahead,
		Watched: c.watchedHours, Patience: c.policy.Patience, Evidence: c.policy.Evidence,
	}
	f := Facts{
		State: string(n.State()), Usable: usable, Minimum: c.Pool.MinNodes, Keep: &k,
		Recent: c.Supply.Removed.Sum(c.policy.RemoveWindow, c.now) + c.removedCount,
		Cap:    c.policy.removalCap(len(c.Nodes)),
	}
	c.wakeAt(latest)
	if usable <= f.Minimum {
		return false
	}
	if c.judge(Action{Kind: DrainNode, Subject: n.ID, Facts: f}) {
		c.removedCount++
		return true
	}
	wakeForIdle(c, k, f)
	return false
}

// wakeForIdle asks to look at an idle node once more when the verdict may change: when
// its patience ends, when the cap allows more, and with each hour's demand.
func wakeForIdle(c *computation, k KeepFacts, f Facts) {
	v := Keep(k)
	switch {
	case !v.Keep:
		c.wakeAt(c.now.Add(c.policy.RemoveWindow / 4))
	case v.Reason == ReasonTooEarly:
		c.wakeAt(c.now.Add(v.Until - k.Idle))
	case v.Reason == ReasonWorthKeeping:
		c.wakeAt(c.now.Truncate(time.Hour).Add(time.Hour))
	}
}

// requestMinimum asks for the nodes that a pool keeps at all times; those that were
// just asked for count.
func requestMinimum(c *computation, usable int) {
	usable += c.requestedCount
	for slot := 0; slot < c.Pool.MaxNodes && usable < c.Pool.MinNodes; slot++ {
		if c.slotReadiness(slot) != missing || c.wanted[slot] {
			continue
		}
		if !c.requestNode(slot, ReasonMinimum) {
			return
		}
		usable++
	}
}
