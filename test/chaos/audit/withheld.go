package audit

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Withheld returns what keeps GPUs of a pool from the next holder when nobody holds or books
// any: nodes that are neither ready nor quarantined with a reason, and cleaning that is not
// over.
func (r Rows) Withheld(pool string) []string {
	i := slices.IndexFunc(r.Pools, func(p ledger.PoolState) bool { return p.Pool.Name == pool })
	if i < 0 {
		return []string{"there is no pool " + pool}
	}
	p := r.Pools[i]
	var found []string
	for _, a := range p.Allocations {
		found = append(found, fmt.Sprintf("allocation %s is %s", a.ID, a.State()))
	}
	for _, c := range p.Pool.Learned.Cleaning {
		found = append(found, fmt.Sprintf("what %s gave back at %s is being cleaned: proofs are awaited from %q", c.ID,
			c.Since.Format(stamp), c.Await))
	}
	for _, n := range p.Nodes {
		switch stated := n.Reason != ""; {
		case node.Machine.Terminal(n.State()) || n.State() == node.Ready:
		case n.State() == node.Quarantined && stated:
		default:
			found = append(found, fmt.Sprintf("node %s is %s (%s)", n.ID, n.State(), n.Reason))
		}
	}
	return found
}
