package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/test/chaos/site"
)

// Ownerless is for how long machines stood that no node owned.
type Ownerless struct {
	Machines int
	Total    time.Duration
	Longest  time.Duration
	// Orphans are those that stand, and those that stood for longer than they may.
	Orphans []string
}

// Ownerless compares the cloud's bill with the nodes. A node owns its machine
// until it is over; while it does not know it, it may own any that carries its
// name.
func (r Rows) Ownerless(bill []site.Machine, limit time.Duration) Ownerless {
	nodes := map[string]node.Node{}
	for _, n := range r.Nodes {
		nodes[n.ID] = n
	}
	var out Ownerless
	for _, m := range bill {
		n, known := nodes[m.Node]
		since, owned := unownedSince(m, n, known)
		if owned || !since.Before(m.To) && !m.Live {
			continue
		}
		stood := m.To.Sub(since)
		out.Machines++
		out.Total += stood
		out.Longest = max(out.Longest, stood)
		switch {
		case m.Live:
			out.Orphans = append(out.Orphans, fmt.Sprintf("machine %s of node %s stands, and no live node owns it",
				m.ID, m.Node))
		case stood > limit:
			out.Orphans = append(out.Orphans,
				fmt.Sprintf("machine %s of node %s stood for %v without an owner, from %s on",
					m.ID, m.Node, stood.Round(time.Second), since.Format(stamp)))
		}
	}
	slices.Sort(out.Orphans)
	return out
}

// unownedSince returns since when a machine has no owner; owned is true when it has one.
func unownedSince(m site.Machine, n node.Node, known bool) (since time.Time, owned bool) {
	switch {
	case !known || n.ProviderID != "" && n.ProviderID != m.ID:
		return m.From, false
	case !node.Machine.Terminal(n.State()):
		return time.Time{}, true
	case n.GoneAt.Before(m.From):
		return m.From, false
	default:
		return n.GoneAt, false
	}
}
