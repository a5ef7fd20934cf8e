package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// nextWork is how long from now something is due.
func (w *world) nextWork() time.Duration {
	w.Helper()
	next, err := w.ledger.NextTask(w.Context())
	require.NoError(w, err)
	require.False(w, next.IsZero())
	return next.Sub(w.clock.Now())
}

func TestWhenAPromiseIsPlannedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.pass(time.Second)
	w.mustReserve(ann, 2, w.windowAfter(5*time.Hour, 6*time.Hour))
	require.Equal(t, time.Minute, w.nextWork(), "it is far off")
	w.pass(20 * time.Second)
	w.mustReserve(ann, 2, w.windowAfter(4*time.Hour, 5*time.Hour))
	require.Equal(t, 40*time.Second, w.nextWork(), "with the one before")
	w.pass(time.Minute)
	require.Greater(t, w.nextWork(), 3*time.Hour, "there is nothing to do yet")
	w.mustReserve(ann, 2, w.windowAfter(2*boot+guard+30*time.Second, time.Hour))
	require.Equal(t, 30*time.Second, w.nextWork(), "nodes are kept for it soon")
	w.mustReserve(ann, 2, w.windowAfter(10*time.Minute, time.Hour))
	require.Zero(t, w.nextWork(), "an idle node may be kept for it now")
}

// TestThePlannersOwnPolicyDecides: a process that books with a shorter guard than that
// of the process that plans makes no promise late.
func TestThePlannersOwnPolicyDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.ledger
	const longer = 30 * time.Minute
	w.ledger = verbs.New(w.store, &w.ids, ledger.Config{Policy: plan.Policy{Guard: longer}, CheckEvery: boot})
	w.pass(time.Second)
	r, err := server.Reserve(t.Context(), w.newPerson("ann"),
		ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: w.windowAfter(2*time.Hour, 3*time.Hour)})
	require.NoError(t, err)
	w.pass(2*time.Hour - boot - longer)
	require.Equal(t, reservation.Warming, w.readReservation(r.ID).State())
	w.pass(boot)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
}
