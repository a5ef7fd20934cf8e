package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// nightly is every evening at nine in Berlin.
func nightly(pool string) ledger.Schedule {
	return ledger.Schedule{
		PoolID: pool, Name: "nightly", GPUs: 2, StartLocal: "2026-03-02T21:00:00", Timezone: "Europe/Berlin",
		RRule: "FREQ=DAILY", Length: time.Hour, DSTPolicy: "shift",
	}
}

func TestAScheduleIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightly("lab"))
	require.NoError(t, err)
	w.work()
	booked := w.live(s.ID)
	require.Len(t, booked, 8, "as far ahead as the ledger looks")
	for i, r := range booked {
		require.Equal(t, reservation.FromSchedule, r.Source)
		require.Equal(t, reservation.Guaranteed, r.Class)
		require.Equal(t, ann.OrganizationID, r.OrganizationID)
		require.NotEmpty(t, r.Slots, i)
	}
	w.pass(3 * time.Hour)
	require.Equal(t, booked, w.live(s.ID), "looking again books nothing")
	w.pass(24 * time.Hour)
	require.Len(t, w.live(s.ID), 8, "one is over, one came")
	starts := map[time.Time]bool{}
	for _, e := range w.events("reservation.booked") {
		starts[w.reservation(e.Subject).Window.Start] = true
	}
	require.Len(t, starts, len(w.events("reservation.booked")), "no date twice")
}

func TestWallTimeIsKeptAcrossTheClockChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(time.Date(2026, 3, 26, 12, 0, 0, 0, time.UTC)) // clocks go forward on the 29th
	s, err := w.ledger.CreateSchedule(t.Context(), w.person("ann"), nightly("lab"))
	require.NoError(t, err)
	w.work()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	hours := map[int]int{}
	for _, r := range w.live(s.ID) {
		require.Equal(t, 21, r.Window.Start.In(berlin).Hour())
		require.Equal(t, time.Hour, r.Window.Length())
		hours[r.Window.Start.UTC().Hour()]++
	}
	require.Equal(t, map[int]int{20: 3, 19: 5}, hours, "three nights before the change, five after")
}

func TestPauseResumeDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightly("lab"))
	require.NoError(t, err)
	w.work()
	paused, err := w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.NoError(t, err)
	require.True(t, paused.Paused)
	w.pass(48 * time.Hour)
	require.Len(t, w.live(s.ID), 6, "what was booked stays, nothing is added")

	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, false)
	require.NoError(t, err)
	w.work()
	require.Len(t, w.live(s.ID), 8)

	require.NoError(t, w.ledger.DeleteSchedule(t.Context(), ann, s.ID))
	require.Empty(t, w.live(s.ID))
	w.pass(2 * time.Hour)
	require.Empty(t, w.live(s.ID))

	events := len(w.events("schedule."))
	require.ErrorIs(t, w.ledger.DeleteSchedule(t.Context(), ann, s.ID), ledger.ErrNotFound, "it is gone")
	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	require.Len(t, w.events("schedule."), events)
}

func TestSchedulesOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.ledger.CreateSchedule(t.Context(), w.person("ann"), nightly("lab"))
	require.NoError(t, err)
	bob := w.person("bob")
	_, err = w.ledger.PauseSchedule(t.Context(), bob, s.ID, true)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	require.ErrorIs(t, w.ledger.DeleteSchedule(t.Context(), bob, s.ID), ledger.ErrNotFound)
}

func TestASchedulesRefusedDateStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	wish := nightly("lab")
	wish.GPUs = 9 // more than the pool can ever hold
	s, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
	require.NoError(t, err)
	fine, err := w.ledger.CreateSchedule(t.Context(), ann, nightly("lab"))
	require.NoError(t, err)
	w.work()
	require.Empty(t, w.live(s.ID))
	require.Len(t, w.events("schedule.refused"), 8)
	require.Len(t, w.live(fine.ID), 8)
	w.pass(3 * time.Hour)
	require.Len(t, w.events("schedule.refused"), 8, "told once")
}

func TestSchedulesThatCanNeverBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	for field, change := range map[string]func(*ledger.Schedule){
		"gpus":             func(s *ledger.Schedule) { s.GPUs = 0 },
		"timezone":         func(s *ledger.Schedule) { s.Timezone = "Mars/Olympus" },
		"rrule":            func(s *ledger.Schedule) { s.RRule = "FREQ=SECONDLY" },
		"pool":             func(s *ledger.Schedule) { s.PoolID = "nowhere" },
		"duration_seconds": func(s *ledger.Schedule) { s.Length = 25 * time.Hour },
	} {
		s := nightly("lab")
		change(&s)
		_, err := w.ledger.CreateSchedule(t.Context(), ann, s)
		invalid := (*ledger.InvalidError)(nil)
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}
