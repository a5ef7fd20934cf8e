package reservation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func TestAReservationBeginsWhereItMay(t *testing.T) {
	t.Parallel()
	for _, s := range reservation.Machine.States {
		r, err := reservation.New(reservation.Reservation{ID: "r"}, s, now)
		if slices.Contains(reservation.Machine.Initial, s) {
			require.NoError(t, err)
			require.Equal(t, s, r.State())
			require.Equal(t, now, r.CreatedAt)
			continue
		}
		require.ErrorContains(t, err, "cannot begin")
	}
}

func TestOnlyWhatIsPlacedTakesItsSlots(t *testing.T) {
	t.Parallel()
	placed := []reservation.State{reservation.Booked, reservation.Warming, reservation.Ready}
	for _, s := range reservation.Machine.States {
		r, err := reservation.Restore(reservation.Reservation{}, s)
		require.NoError(t, err)
		require.Equal(t, slices.Contains(placed, s), r.Placed(), s)
		require.Equal(t, slices.Contains(reservation.Machine.Live(), s), r.Live(), s)
	}
}

func TestItsTimesAndItsEntry(t *testing.T) {
	t.Parallel()
	window := calendar.Interval{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
	r, err := reservation.New(reservation.Reservation{
		ID: "r", Window: window, Shape: capacity.Shape{Nodes: 2, PerNode: 6}, Slots: []int{4, 1},
	}, reservation.Booked, now)
	require.NoError(t, err)
	require.Equal(t, calendar.Booking{ID: "r", Interval: window, Slots: []int{4, 1}, GPUs: 6}, r.Booking())
	minute := func(n int) time.Time { return now.Add(time.Duration(n) * time.Minute) }
	for i, e := range []reservation.Event{reservation.Warm, reservation.BecomeReady, reservation.LoseNode,
		reservation.BecomeReady, reservation.Claim} {
		r, err = r.Apply(e, string(e), minute(i+1))
		require.NoError(t, err)
	}
	require.Equal(t, minute(1), r.WarmedAt, "the first time")
	require.Equal(t, minute(4), r.ReadyAt, "the last time")
	require.Equal(t, minute(5), r.EndedAt)
	require.Equal(t, "claim", r.Reason)
}

func TestItIsBookedWhenItHasAPlace(t *testing.T) {
	t.Parallel()
	booked, err := reservation.New(reservation.Reservation{}, reservation.Booked, now)
	require.NoError(t, err)
	require.Equal(t, now, booked.BookedAt)
	waits, err := reservation.New(reservation.Reservation{}, reservation.Waitlisted, now)
	require.NoError(t, err)
	require.Zero(t, waits.BookedAt)
	promoted, err := waits.Apply(reservation.Promote, "room", now.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Minute), promoted.BookedAt)
	require.Zero(t, promoted.EndedAt)
	require.Zero(t, waits.BookedAt, "the reservation before the event is not changed")
}

func TestAPartCostsItsShareOfWhatWasAgreed(t *testing.T) {
	t.Parallel()
	r := reservation.Reservation{ID: "r", Shape: capacity.Shape{Nodes: 3, PerNode: 8}, Slots: []int{4, 1, 6}, Cost: 100}
	rest, parts, _ := r.Carve(map[int]int{1: 8}, func() string { return "p" })
	require.Equal(t, []int{4, 6}, rest[0].Slots)
	require.Equal(t, []int{1}, parts[0].Slots)
	require.EqualValues(t, 32, parts[0].Cost)
	require.EqualValues(t, 68, rest[0].Cost, "nothing of it is lost")
}
