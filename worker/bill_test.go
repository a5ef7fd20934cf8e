package worker_test

import (
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners/sim"
)

func (w *world) allClouds() []*sim.Cloud {
	if w.spare == nil {
		return []*sim.Cloud{w.cloud}
	}
	return []*sim.Cloud{w.cloud, w.spare}
}

// countMachines counts the machines of every node, at whichever cloud.
func (w *world) countMachines() map[string]int {
	live := map[string]int{}
	for _, c := range w.allClouds() {
		for id, n := range c.LivePerNode() {
			live[id] += n
		}
	}
	return live
}

// billOfClouds is what the clouds charge until now.
func (w *world) billOfClouds() (lines []sim.Line, total money.MicroUSD) {
	for _, c := range w.allClouds() {
		b := c.Bill(w.clock.Now())
		lines, total = append(lines, b.Lines...), total+b.Total.Cost
	}
	return lines, total
}

func (w *world) readCosts() ledger.Costs {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) (ledger.Costs, error) {
		return r.Costs(ledger.Scope{All: true}, time.Unix(0, 0), r.Now())
	})
}

func (w *world) readOrphans(standing bool) []ledger.Orphan {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) ([]ledger.Orphan, error) {
		return r.Orphans(ledger.OrphanFilter{Billed: standing})
	})
}

// requireBill checks that what the ledger charged somebody for, since there was
// anything, is what the clouds charge, to the micro-dollar.
func (w *world) requireBill() {
	w.t.Helper()
	lines, total := w.billOfClouds()
	if costs := w.readCosts(); costs.Total() != total {
		require.Equal(w.t, total.Decimal(), costs.Total().Decimal(), "the bill is %+v\nthe ledger has %+v\norphans %+v",
			lines, costs.Lines, w.readOrphans(false))
	}
}

// requireClean checks what must be so at the end of every story: no machine is
// left, no node ever had two, and every machine is accounted for.
func (w *world) requireClean() {
	w.t.Helper()
	require.True(w.t, w.isQuiet(), "it is not over: nodes %v, machines %v, orphans %v", w.nodeStates(),
		w.countMachines(),
		w.readOrphans(true))
	lines, _ := w.billOfClouds()
	made := map[string]int{}
	for _, line := range lines {
		made[line.NodeID]++
	}
	for id, n := range made {
		require.Equal(w.t, 1, n, "machines of node %s, of %v", id, slices.Collect(maps.Keys(made)))
	}
	w.requireBill()
}

// isQuiet reports whether every node is over, no machine is left and nobody is at
// work.
func (w *world) isQuiet() bool {
	for _, state := range w.nodeStates() {
		if !node.Machine.Terminal(state) {
			return false
		}
	}
	return len(w.countMachines()) == 0 && len(w.readOrphans(true)) == 0 && w.readTasks()[ledger.TaskRunning] == 0
}

// driveUntilQuiet drives until it is quiet, but not for ever.
func (w *world) driveUntilQuiet() {
	w.t.Helper()
	for tries := 0; tries < 40 && !w.isQuiet(); tries++ {
		w.driveFor(3 * time.Minute)
	}
	w.requireClean()
}

// liveAllocations and reservations are those that are not over.
func (w *world) liveAllocations() []allocation.Allocation {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) ([]allocation.Allocation, error) {
		return r.Allocations(w.actor.Scope(), ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500})
	})
}

func (w *world) liveReservations() []reservation.Reservation {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) ([]reservation.Reservation, error) {
		return r.Reservations(w.actor.Scope(), ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500})
	})
}

// endEverything ends everything that is asked of the installation.
func (w *world) endEverything() {
	w.t.Helper()
	for _, a := range w.liveAllocations() {
		_, err := w.ledger.Release(w.t.Context(), w.actor, a.ID)
		require.NoError(w.t, err)
	}
	for _, n := range w.readNodes() {
		if n.Kept() {
			_, err := w.ledger.DrainNode(w.t.Context(), w.actor, n.ID, "")
			require.NoError(w.t, err)
		}
	}
	for _, r := range w.liveReservations() {
		_, err := w.ledger.CancelReservation(w.t.Context(), w.actor, r.ID)
		require.NoError(w.t, err)
	}
}

// removeFaults takes back every fault that has not hit yet.
func (w *world) removeFaults() {
	for _, c := range w.allClouds() {
		for _, op := range []sim.Op{sim.OpOffers, sim.OpCreate, sim.OpGet, sim.OpList, sim.OpDelete, sim.OpRenew} {
			c.ClearFaults(op)
		}
	}
}

// closeAndCheck gives everything back, and checks that nothing is left of it.
func (w *world) closeAndCheck() {
	w.t.Helper()
	w.removeFaults()
	w.endEverything()
	w.driveUntilQuiet()
}

// allocateNode takes a node's GPUs for an hour.
func (w *world) allocateNode() allocation.Allocation {
	w.t.Helper()
	a, err := w.ledger.Allocate(w.t.Context(), w.actor, ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Hour})
	require.NoError(w.t, err)
	return a
}

// requireActive checks that an allocation has what it asked for.
func (w *world) requireActive(a allocation.Allocation) {
	w.t.Helper()
	require.Equal(w.t, allocation.Active, w.readAllocation(a.ID).State())
}
