package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
)

// Cleaned is what the daemon of a node says of what is left there of a holder's work.
type Cleaned struct {
	AllocationID string
	Problem      string // why it is not clean; empty: nothing of the holder is left
	Proof        string // what was ended, removed and read back, for people
}

// Lease is how long an allocation's work may still be on its nodes.
type Lease struct {
	AllocationID string
	Left         time.Duration
}

// JudgeHolds returns, of the allocations whose work a node's daemon has (listed), those
// whose work must end, and besides them those that have ended and of which it has to prove
// that nothing is left; and the leases of those that go on. In a pool that only reconciles there are none of
// either: what is not known may be newer than a backup.
func JudgeHolds(r Reader, p Pool, nodeID string, listed []string) (ended []string, leases []Lease, err error) {
	if p.Recovery.Active() {
		return nil, nil, nil
	}
	// Not of the pool, which may have many thousand rows: daemons ask all the time.
	known, err := r.AllocationsByID(listed)
	if err != nil {
		return nil, nil, fmt.Errorf("reading holds: %w", err)
	}
	return EndedIn(nodeID, listed, known, p.Cleaning, r.Now()), LeasesIn(nodeID, listed, known, r.Now()), nil
}

// LeasesIn returns the leases of the listed allocations that go on, of what is known of them, and perhaps of others.
func LeasesIn(nodeID string, listed []string, known []allocation.Allocation, now time.Time) (all []Lease) {
	if len(listed) == 0 {
		return nil
	}
	for _, a := range known {
		if goesOn(a, nodeID, now) && slices.Contains(listed, a.ID) {
			all = append(all, Lease{AllocationID: a.ID, Left: a.LeaseUntil.Sub(now)})
		}
	}
	return all
}

// goesOn reports whether the work of an allocation may be on a node.
func goesOn(a allocation.Allocation, nodeID string, now time.Time) bool {
	return a.Holds() && slices.Contains(a.Opened, nodeID) && now.Before(a.LeaseUntil)
}

// EndedIn is what JudgeHolds returns as ended, of what is known of the listed allocations, and perhaps of others, and
// of what is being cleaned in the pool.
func EndedIn(nodeID string, listed []string, known []allocation.Allocation, cleaning []learned.Cleaning,
	now time.Time) (ended []string) {
	held := map[string]bool{}
	for _, a := range known {
		held[a.ID] = goesOn(a, nodeID, now)
	}
	for _, id := range listed {
		if !held[id] && !slices.Contains(ended, id) {
			ended = append(ended, id)
		}
	}
	for _, c := range cleaning {
		if c.Awaits(nodeID) && !slices.Contains(ended, c.ID) {
			ended = append(ended, c.ID)
		}
	}
	return ended
}

// CanOpen reports whether work may begin on a node in a state: also on one that takes no
// new holders, for those it has.
func CanOpen(n node.Node) bool {
	return n.State() == node.Ready || n.State() == node.Draining || n.State() == node.Quarantined
}
