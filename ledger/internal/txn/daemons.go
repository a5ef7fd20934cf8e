package txn

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// DaemonsSeen returns when the daemons of those of some nodes that are ready said something last, by node.
func DaemonsSeen(r ledger.Reader, nodes []node.Node) (map[string]time.Time, error) {
	var ready []string
	for _, n := range nodes {
		if n.State() == node.Ready {
			ready = append(ready, n.ID)
		}
	}
	if len(ready) == 0 {
		return map[string]time.Time{}, nil
	}
	return r.DaemonsSeen(ready)
}

// DaemonsSeen returns when the daemons of the pool's nodes said something last, by node. They are asked for once in a
// transaction.
func (p *PoolTx) DaemonsSeen() (map[string]time.Time, error) {
	if p.daemonsSeen != nil {
		return p.daemonsSeen, nil
	}
	nodes := make([]node.Node, 0, len(p.Nodes.Rows))
	for _, n := range p.Nodes.Rows {
		nodes = append(nodes, *n)
	}
	seen, err := DaemonsSeen(p.Tx.Port, nodes)
	if err != nil {
		return nil, fmt.Errorf("asking for the daemons of pool %s: %w", p.Pool.Name, err)
	}
	p.daemonsSeen = seen
	return seen, nil
}
