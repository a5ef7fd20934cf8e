package invariants

import (
	"fmt"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
)

// Between returns what must not have happened from one moment to a later one:
// a move that no sequence of transitions makes, a version that fell, or a change
// without a new version.
func Between(before, after Rows) []Violation {
	return sortViolations(append(append(
		checkTransitions(&reservation.Machine, reservationStates(before), reservationStates(after)),
		checkTransitions(&allocation.Machine, allocationStates(before), allocationStates(after))...),
		checkTransitions(&node.Machine, nodeStates(before), nodeStates(after))...))
}

// row is what Between looks at.
type row[S ~string] struct {
	state   S
	version int
}

func reservationStates(rows Rows) map[string]row[reservation.State] {
	all := map[string]row[reservation.State]{}
	for _, r := range rows.OverReservations {
		all[r.ID] = row[reservation.State]{r.State(), r.Version}
	}
	for _, p := range rows.Pools {
		for _, r := range p.Reservations {
			all[r.ID] = row[reservation.State]{r.State(), r.Version}
		}
	}
	return all
}

func allocationStates(rows Rows) map[string]row[allocation.State] {
	all := map[string]row[allocation.State]{}
	for _, a := range rows.OverAllocations {
		all[a.ID] = row[allocation.State]{a.State(), a.Version}
	}
	for _, p := range rows.Pools {
		for _, a := range p.Allocations {
			all[a.ID] = row[allocation.State]{a.State(), a.Version}
		}
	}
	return all
}

func nodeStates(rows Rows) map[string]row[node.State] {
	all := map[string]row[node.State]{}
	for _, p := range rows.Pools {
		for _, n := range p.Nodes {
			all[n.ID] = row[node.State]{n.State(), n.Version}
		}
	}
	return all
}

func checkTransitions[S, E ~string](table *statemachine.Table[S, E], before, after map[string]row[S]) []Violation {
	var found []Violation
	for id, now := range after {
		was, known := before[id]
		switch {
		case !known:
		case was.state != now.state && !isReachable(table, was.state, now.state):
			found = append(found, Violation{Transitions, id, fmt.Sprintf("went from %s to %s", was.state, now.state)})
		case now.version < was.version || was.state != now.state && now.version == was.version:
			found = append(found, Violation{Transitions, id,
				fmt.Sprintf("went from version %d (%s) to %d (%s)", was.version, was.state, now.version, now.state)})
		}
	}
	return found
}

// isReachable reports whether transitions of the table lead from one state to
// another. A verb may take several at once.
func isReachable[S, E ~string](table *statemachine.Table[S, E], from, to S) bool {
	seen, next := map[S]bool{from: true}, []S{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, t := range table.Transitions {
			if t.From != at || seen[t.To] {
				continue
			}
			if t.To == to {
				return true
			}
			seen[t.To] = true
			next = append(next, t.To)
		}
	}
	return false
}
