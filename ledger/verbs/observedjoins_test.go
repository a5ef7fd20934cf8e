package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// Work that joins the boot of a node for a promise waits less for it, and claims nothing: the promise was not kept
// yet when it came.
func TestWorkThatJoinsABootClaimsNothing(t *testing.T) {
	t.Parallel()
	warmUp := func(looks int) (*cluster, reservation.Reservation, int) {
		w := newCluster(t)
		r := w.mustReserve(w.ann, 1, w.windowAfter(boot+2*guard, time.Hour))
		n := 0
		for ; n != looks && len(w.readNodes(node.Ready)) == 0; n++ {
			w.observe()
		}
		return w, r, n
	}
	before, _, looks := warmUp(-1)
	ready := before.readNodes(node.Ready)[0].ReadyAt
	w, r, _ := warmUp(looks - 1)
	w.begin("17", "vision", 0, 1, w.readNodes(node.Booting)[0].ProviderID)
	w.work[0].QueuedAt, w.work[0].StartedAt = ready.Add(-2*time.Second), ready.Add(time.Second)
	require.Equal(t, ledger.Observed{Started: 1}, w.observe())
	require.Empty(t, w.workOf("17").Reservations)
	require.NotEqual(t, reservation.Claimed, w.readReservation(r.ID).State())
	zero, waited := w.workOf("17").Wait()
	require.True(t, waited)
	require.LessOrEqual(t, zero, allocation.ZeroWait, "it waited for hardly anything, all the same")
}
