package proof_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// narrowActor is the person of the organization that may hold 5 GPUs.
func (w *world) narrowActor() ledger.Actor { return w.actors[2] }

func (w *world) reservePromise(class reservation.Class, gpus int, from, to time.Duration) reservation.Reservation {
	w.t.Helper()
	r, err := w.ledger.Reserve(w.ctx, w.narrowActor(), ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Class: class,
		Window: calendar.Interval{Start: w.now.Add(from), End: w.now.Add(to)}})
	require.NoError(w.t, err)
	return r
}

// TestTakeoverKeepsTheQuota: an allocation is placed as if the organization's own
// reservations were not there. One whose place it does not take still counts, and gives
// way if both would be more than the organization may hold.
func TestTakeoverKeepsTheQuota(t *testing.T) {
	t.Parallel()
	w := inMemory(t, t.Context())
	defer w.closeStore()
	speculative := w.reservePromise(reservation.Speculative, 4, 0, 30*time.Minute)
	w.reservePromise(reservation.Guaranteed, 3, 2*time.Hour, 4*time.Hour) // leaves one whole node
	_, err := w.ledger.Allocate(t.Context(), w.narrowActor(),
		ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: 4 * time.Hour})
	require.NoError(t, err)
	rows := w.readRows(true)
	require.Empty(t, invariants.Check(rows))
	require.Len(t, rows.OverReservations, 1)
	require.Equal(t, speculative.ID, rows.OverReservations[0].ID)
}

// TestOffersCountTheBoot: what is offered instead of an allocation would have to
// wait for a boot, and must fit with that time added.
func TestOffersCountTheBoot(t *testing.T) {
	t.Parallel()
	w := inMemory(t, t.Context())
	defer w.closeStore()
	w.reservePromise(reservation.Guaranteed, 4, 30*time.Minute, time.Hour)
	req := ledger.AllocateRequest{Pool: "lab", GPUs: 6, Lease: 30 * time.Minute}
	_, err := w.ledger.Allocate(t.Context(), w.narrowActor(), req)
	var refused *ledger.RefusedError
	require.True(t, errors.As(err, &refused), "%v", err)
	now := 0
	for _, o := range refused.Decision.Offers {
		if !o.Window.Start.After(w.now) {
			now++
			req.GPUs, req.Lease = o.Shape.GPUs(), o.Window.Length()
			err := w.tryVerb(w.narrowActor(), func(ctx context.Context, l *verbs.Ledger) error {
				_, err := l.Allocate(ctx, w.narrowActor(), req)
				return err
			})
			require.NoError(t, err, "%s until %s was offered", o.Shape, o.Window.End)
		}
	}
	require.NotZero(t, now, "something smaller is possible at once: %v", refused.Decision.Offers)
}
