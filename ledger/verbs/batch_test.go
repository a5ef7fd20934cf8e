package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// hourlyBatch asks for the whole pool in each of n hours, and again in every tenth.
func hourlyBatch(n int) []ledger.BatchItem {
	var batch []ledger.BatchItem
	for i := range n {
		start := monday.Add(48*time.Hour + time.Duration(i)*time.Hour)
		item := ledger.BatchItem{Request: ledger.ReserveRequest{Pool: "lab", GPUs: 8,
			Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}}}
		if batch = append(batch, item); i%10 == 9 {
			batch = append(batch, item)
		}
	}
	return batch
}

func (w *world) countBooked() int {
	var n int
	w.read(func(r ledger.Reader) error {
		state, err := r.PoolState(w.pool.ID)
		n = len(state.Reservations)
		return err
	})
	return n
}

// bookSpeculative books a speculative reservation where the first of hourly will be.
func (w *world) bookSpeculative(t *testing.T, l *verbs.Ledger, by ledger.Actor) string {
	t.Helper()
	r, err := l.Reserve(t.Context(), by, ledger.ReserveRequest{
		Pool: "lab", GPUs: 2, Window: hourlyBatch(1)[0].Request.Window, Class: reservation.Speculative,
		Probability: 0.5,
	})
	require.NoError(t, err)
	return r.ID
}

// A large batch is written while it is decided; what it leaves is what a small
// one would leave.
func TestALargeBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	outcomes, err := w.ledger.ReserveMany(t.Context(), ann, hourlyBatch(2100))
	require.NoError(t, err)
	refused := 0
	for _, o := range outcomes {
		if o.Err == nil {
			require.Equal(t, 1, o.Reservation.Version)
			require.Equal(t, o.Reservation.Window, w.readReservation(o.Reservation.ID).Window)
			continue
		}
		var full *ledger.RefusedError
		require.ErrorAs(t, o.Err, &full)
		refused++
	}
	require.Equal(t, 210, refused)
	require.Equal(t, 2100, w.countBooked())
	_, err = w.ledger.CancelReservation(t.Context(), ann, outcomes[0].Reservation.ID)
	require.NoError(t, err, "the cache has the version that is stored")
}

// When a part cannot be written nothing is there, in the cache either.
func TestALargeBatchThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	speculative := w.bookSpeculative(t, l, ann)
	g.mu.Lock()
	g.fail = 1
	g.mu.Unlock()
	_, err := l.ReserveMany(t.Context(), ann, hourlyBatch(2100))
	require.ErrorIs(t, err, errFull)
	require.Equal(t, 2, w.countBooked(), "only what was there before")
	require.Equal(t, reservation.Booked, w.readReservation(speculative).State(), "it did not give way")
	outcomes, err := l.ReserveMany(t.Context(), ann, hourlyBatch(2100))
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err)
	require.Equal(t, 2101, w.countBooked())
	require.Equal(t, reservation.Cancelled, w.readReservation(speculative).State())
}
