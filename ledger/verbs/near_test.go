package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) allocateGang(by ledger.Actor) allocation.Allocation {
	w.Helper()
	a, err := w.ledger.Allocate(w.Context(), by, ledger.AllocateRequest{Pool: "lab", Lease: time.Hour,
		Layout: capacity.Layout{Nodes: 2, PerNode: 2}})
	require.NoError(w, err)
	return a
}

// inRacks labels the nodes of slots 0 to 3.
func (w *world) inRacks(racks ...string) {
	w.Helper()
	for slot, rack := range racks {
		w.label(w.nodeOnSlot(slot), ledger.NodeChange{Labels: map[string]string{"rack": rack}})
	}
}

// The nodes of a gang are in one rack where one has room; otherwise they are where they are.
func TestGangsStayInARack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(4)
	w.inRacks("a", "b", "a", "b")
	ann := w.newPerson("ann")
	require.Equal(t, []int{0, 2}, w.allocateGang(ann).Slots)
	require.Equal(t, []int{1, 3}, w.allocateGang(ann).Slots)

	w = newDaemons(t)
	w.inRacks("a", "b", "c", "b")
	j := w.submit(w.newSubmitter("bob"), jobOf(0, aGang))
	w.doDueWork()
	require.Equal(t, []int{1, 3}, w.slotsOf(j.ID), "a job's, too")
	require.Equal(t, []int{0, 2}, w.allocateGang(w.newPerson("ann")).Slots, "no rack has room")
}

// Nobody waits for a boot, or makes others give way, so that a gang is in one rack.
func TestNearnessCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(4)
	w.inRacks("a", "b", "a", "b")
	ann := w.newPerson("ann")
	require.Equal(t, []int{0}, w.mustAllocate(ann, 2).Slots)
	require.Equal(t, []int{1}, w.mustAllocate(ann, 2).Slots)
	gang := w.allocateGang(ann)
	require.Equal(t, []int{2, 3}, gang.Slots)
	require.Equal(t, allocation.Active, gang.State())
}
