package proof_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/invariants"
)

// drawn takes a history's choices from rapid, which makes a failing one short.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// TestHistories runs random histories of everything that people, agents, the
// planner and the machines do. After each step the statements of package
// invariants hold, every offer of a refusal is accepted when it is taken at once,
// and in the end nothing that was acknowledged is missing.
func TestHistories(t *testing.T) {
	t.Parallel()
	ctx, seen := t.Context(), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := inMemory(t, ctx)
		defer w.closeStore()
		before := w.readRows(false)
		for range rapid.IntRange(6, 18).Draw(t, "steps") {
			did := w.takeStep(drawn{t})
			after := w.readRows(false)
			require.Empty(t, invariants.Check(after), did)
			require.Empty(t, invariants.Between(before, after), did)
			before = after
		}
		end := w.readRows(true)
		require.Empty(t, invariants.Check(end))
		require.Empty(t, invariants.Between(before, end))
		w.nothingMissing(end)
		for _, e := range end.Events {
			seen[e.Type+" "+e.Reason]++
		}
	})
	for _, moment := range moments {
		require.True(t, seen[moment] > 0 || !thorough, "no history had a %s: %v", moment, seen)
	}
}

// moments are what the histories must have been through to prove anything.
var moments = []string{
	"reservation.booked ", "reservation.warming lead_time_reached", "reservation.claimed claimed",
	"allocation.active nodes_ready", "node.gone empty",
}

// nothingMissing: whatever was acknowledged is there, alive or over, and what is
// over has an event that says why, which Check has seen to.
func (w *world) nothingMissing(rows invariants.Rows) {
	w.t.Helper()
	there := map[string]bool{}
	for _, p := range rows.Pools {
		for _, r := range p.Reservations {
			there[r.ID] = true
		}
		for _, a := range p.Allocations {
			there[a.ID] = true
		}
	}
	for _, r := range rows.OverReservations {
		there[r.ID] = true
	}
	for _, a := range rows.OverAllocations {
		there[a.ID] = true
	}
	for _, id := range append(append([]string{}, w.promised...), w.held...) {
		require.True(w.t, there[id], "%s was acknowledged and is nowhere", id)
	}
}
