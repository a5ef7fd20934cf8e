package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) resizePool(nodes int) {
	var current ledger.Pool
	w.read(func(r ledger.Reader) error {
		var err error
		current, err = r.Pool(w.pool.ID)
		return err
	})
	_, err := w.ledger.ForcePool(w.Context(), operator, w.pool.ID, current.DefinitionVersion,
		func(p *capacity.Pool) { p.MaxNodes = nodes })
	require.NoError(w, err)
	w.pass(time.Second)
}

func TestAShrunkPoolKeepsMovesOrFlagsItsPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	window := w.windowAfter(10*time.Hour, 11*time.Hour)
	var promises []reservation.Reservation
	for range 4 {
		promises = append(promises, w.mustReserve(ann, 2, window))
	}
	elsewhen := w.mustReserve(ann, 8, w.windowAfter(20*time.Hour, 21*time.Hour))
	_, err := w.ledger.CancelReservation(t.Context(), ann, promises[0].ID)
	require.NoError(t, err)
	w.resizePool(2)
	flagged, moved := 0, 0
	for _, p := range promises[1:] {
		now := w.readReservation(p.ID)
		require.Equal(t, reservation.Booked, now.State(), "nothing is dropped")
		if now.Degraded {
			flagged++
			require.Equal(t, plan.ReasonShrunk, now.Reason)
			continue
		}
		require.Less(t, now.Slots[0], 2)
		if now.Slots[0] != p.Slots[0] {
			moved++
		}
	}
	require.Equal(t, 1, flagged, "two of three have a place")
	require.Equal(t, 1, moved)
	require.True(t, w.readReservation(elsewhen.ID).Degraded)
	require.Len(t, w.readEvents("reservation.degraded"), 2)
	require.Len(t, w.readEvents("reservation.moved"), 1)
	w.resizePool(4)
	for _, id := range []string{promises[1].ID, promises[2].ID, promises[3].ID, elsewhen.ID} {
		require.False(t, w.readReservation(id).Degraded)
	}
	require.Len(t, w.readEvents("reservation.restored"), 2)
}

func TestANodeBeyondAShrunkPoolServesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 8)
	w.pass(2 * boot)
	w.resizePool(1)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	r := w.mustReserve(ann, 2, w.windowAfter(24*time.Hour, 25*time.Hour))
	require.Equal(t, []int{0}, r.Slots)
	w.pass(time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	w.pass(time.Hour)
	require.Empty(t, w.readNodes(node.Ready, node.Draining))
}

func TestAPauseStopsSpeculationAndSparesPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	speculative := w.mustReserve(agentBeside(ann, "agent"), 2, w.windowAfter(time.Hour, 3*time.Hour))
	promise := w.mustReserve(ann, 2, w.windowAfter(time.Hour, 3*time.Hour))
	w.pass(time.Hour)
	require.Equal(t, reservation.Ready, w.readReservation(speculative.ID).State())
	until := w.clock.Now().Add(time.Hour)
	admin := ann
	admin.Role = ledger.Admin
	_, err := w.ledger.PausePrewarming(t.Context(), admin, ann.OrganizationID, "too dear", until)
	require.NoError(t, err)
	w.pass(time.Minute)
	require.Equal(t, reservation.Warming, w.readReservation(speculative.ID).State())
	require.Equal(t, plan.ReasonPaused, w.readReservation(speculative.ID).Reason)
	require.Equal(t, reservation.Ready, w.readReservation(promise.ID).State())
	w.pass(time.Hour + 2*boot)
	require.Equal(t, reservation.Ready, w.readReservation(speculative.ID).State(), "it ended by itself")
}

func TestAPoolLearnsWhatHappensToIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.pass(time.Minute)
	w.mustAllocate(ann, 4)
	w.pass(3 * time.Hour)
	var p ledger.Pool
	w.read(func(r ledger.Reader) error {
		var err error
		p, err = r.Pool(w.pool.ID)
		return err
	})
	require.Len(t, p.Boot.Seen, 2)
	require.Greater(t, p.Odds(monday), 0.9, "two were given")
	require.Zero(t, p.Created.Sum(100*time.Hour, w.clock.Now()), "both served somebody")
	require.False(t, p.Arrivals.Until.IsZero())
	taken := 0.0
	for _, nodes := range p.Arrivals.Taken {
		taken += nodes
	}
	require.InDelta(t, 2, taken, 0.01, "somebody came and took two nodes")
}

// A promise that loses its node when it was warm already is warm again on another,
// and was not late: only the first time tells how punctual it was.
func TestOnlyTheFirstWarmUpIsPunctual(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.mustReserve(w.newPerson("ann"), 2, w.windowAfter(0, time.Hour))
	w.pass(boot)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	require.Contains(t, w.readEvents("reservation.ready")[0].Message, "2 GPUs warm ")
	_, err := w.ledger.DrainNode(t.Context(), operator, w.readNodes(node.Ready)[0].ID, "")
	require.NoError(t, err)
	w.pass(2 * boot)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	told := w.readEvents("reservation.ready")
	require.Len(t, told, 2)
	require.Equal(t, "2 GPUs warm again", told[1].Message)
}
