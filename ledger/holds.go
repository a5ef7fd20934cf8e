package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/node"
)

// Cleaned is what the daemon of a node says of what is left there of a holder's work.
type Cleaned struct {
	AllocationID string
	Problem      string // why it is not clean; empty: nothing of the holder is left
	Proof        string // what was ended, removed and read back, for people
}

// EndedHolds returns, of the allocations whose work a node's daemon has (listed), those
// whose work must end, and besides them those that have ended and of which it has to prove
// that nothing is left.
func EndedHolds(r Reader, nodeID string, listed []string) ([]string, error) {
	n, err := r.Node(nodeID)
	if err != nil {
		return nil, fmt.Errorf("reading the node of holds: %w", err)
	}
	pool, err := r.Pool(n.PoolID)
	if err != nil {
		return nil, fmt.Errorf("reading the pool of holds: %w", err)
	}
	var ended []string
	for _, id := range listed {
		a, err := r.Allocation(Scope{All: true}, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("reading the allocation of a hold: %w", err)
		}
		held := err == nil && a.Holds() && slices.Contains(a.Opened, nodeID) && r.Now().Before(a.LeaseUntil)
		if !held && !slices.Contains(ended, id) {
			ended = append(ended, id)
		}
	}
	for _, c := range pool.Cleaning {
		if c.Awaits(nodeID) && !slices.Contains(ended, c.ID) {
			ended = append(ended, c.ID)
		}
	}
	return ended, nil
}

// CanOpen reports whether work may begin on a node in a state: also on one that takes no
// new holders, for those it has.
func CanOpen(n node.Node) bool {
	return n.State() == node.Ready || n.State() == node.Draining || n.State() == node.Quarantined
}
