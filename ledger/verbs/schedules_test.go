package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// nightlySchedule is every evening at nine in Berlin.
func nightlySchedule(pool string) ledger.Schedule {
	return ledger.Schedule{
		PoolID: pool, Name: "nightly", GPUs: 2, StartLocal: "2026-03-02T21:00:00", Timezone: "Europe/Berlin",
		RRule: "FREQ=DAILY", Length: time.Hour, DSTPolicy: "shift",
	}
}

func TestAScheduleIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	w.doDueWork()
	booked := w.liveOf(s.ID)
	require.Len(t, booked, 8, "as far ahead as the ledger looks")
	for i, r := range booked {
		require.Equal(t, reservation.FromSchedule, r.Origin)
		require.Equal(t, reservation.Guaranteed, r.Class)
		require.Equal(t, ann.OrganizationID, r.OrganizationID)
		require.NotEmpty(t, r.Slots, i)
	}
	w.pass(3 * time.Hour)
	require.Equal(t, booked, w.liveOf(s.ID), "looking again books nothing")
	w.pass(24 * time.Hour)
	require.Len(t, w.liveOf(s.ID), 8, "one is over, one came")
	starts := map[time.Time]bool{}
	for _, e := range w.readEvents("reservation.booked") {
		starts[w.readReservation(e.Subject).Window.Start] = true
	}
	require.Len(t, starts, len(w.readEvents("reservation.booked")), "no date twice")
}

// A name addresses one schedule of an organization. One that has no dates left, or
// is deleted, gives its name up.
func TestASchedulesNameIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, once := w.newPerson("ann"), nightlySchedule("lab")
	once.RRule = "FREQ=DAILY;COUNT=1"
	first, err := w.ledger.CreateSchedule(t.Context(), ann, once)
	require.NoError(t, err)
	var taken *ledger.TakenError
	_, err = w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.ErrorAs(t, err, &taken)
	require.ErrorIs(t, err, ledger.ErrTaken)
	require.Equal(t, "schedule "+first.ID+` is named "nightly"`, err.Error())
	_, err = w.ledger.CreateSchedule(t.Context(), w.newPerson("bob"), nightlySchedule("lab"))
	require.NoError(t, err, "another organization has names of its own")

	w.pass(11*time.Hour + 30*time.Minute) // its only date goes on
	_, err = w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.ErrorAs(t, err, &taken)
	w.pass(time.Hour)
	second, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	require.Equal(t, first.ID, w.readEvents("schedule.deleted")[0].Subject)
	_, _, err = w.ledger.DeleteSchedule(t.Context(), ann, second.ID)
	require.NoError(t, err)
	_, err = w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
}

// A pool that recovers promises nothing, to people and schedules alike. Schedules of
// other pools go on, and its own catch up when an operator has confirmed.
func TestAPoolThatRecoversPromisesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	_, err = w.ledger.BeginRecovery(t.Context(), operator, "", "a backup was restored")
	require.NoError(t, err)
	_, err = w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 2,
		Window: w.windowAfter(time.Hour, 2*time.Hour), Queue: true})
	require.ErrorIs(t, err, ledger.ErrRecovering)
	before := len(w.liveOf(s.ID))

	other := w.pool.Pool
	other.ID, other.Name = "", "other"
	_, err = w.ledger.CreatePool(t.Context(), operator, other, w.pool.Boot)
	require.NoError(t, err)
	wish := nightlySchedule("other")
	wish.Name = "elsewhere"
	goes, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
	require.NoError(t, err)
	w.pass(25 * time.Hour)
	require.Len(t, w.liveOf(s.ID), before, "nothing is booked, and nothing ends")
	require.Len(t, w.liveOf(goes.ID), 8)

	_, err = w.ledger.EndRecovery(t.Context(), operator)
	require.NoError(t, err)
	w.doDueWork()
	require.Len(t, w.liveOf(s.ID), 8, "the dates that were missing are booked at once")
}

func TestWallTimeIsKeptAcrossTheClockChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(time.Date(2026, 3, 26, 12, 0, 0, 0, time.UTC)) // clocks go forward on the 29th
	s, err := w.ledger.CreateSchedule(t.Context(), w.newPerson("ann"), nightlySchedule("lab"))
	require.NoError(t, err)
	w.doDueWork()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	hours := map[int]int{}
	for _, r := range w.liveOf(s.ID) {
		require.Equal(t, 21, r.Window.Start.In(berlin).Hour())
		require.Equal(t, time.Hour, r.Window.Length())
		hours[r.Window.Start.UTC().Hour()]++
	}
	require.Equal(t, map[int]int{20: 3, 19: 5}, hours, "three nights before the change, five after")
}

func TestPauseResumeDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	w.doDueWork()
	paused, err := w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.NoError(t, err)
	require.True(t, paused.Paused)
	w.pass(48 * time.Hour)
	require.Len(t, w.liveOf(s.ID), 6, "what was booked stays, nothing is added")

	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, false)
	require.NoError(t, err)
	w.doDueWork()
	require.Len(t, w.liveOf(s.ID), 8)

	_, _, err = w.ledger.DeleteSchedule(t.Context(), ann, s.ID)
	require.NoError(t, err)
	require.Empty(t, w.liveOf(s.ID))
	w.pass(2 * time.Hour)
	require.Empty(t, w.liveOf(s.ID))

	events := len(w.readEvents("schedule."))
	_, _, err = w.ledger.DeleteSchedule(t.Context(), ann, s.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound, "it is gone")
	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	require.Len(t, w.readEvents("schedule."), events)
}

func TestSchedulesOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.ledger.CreateSchedule(t.Context(), w.newPerson("ann"), nightlySchedule("lab"))
	require.NoError(t, err)
	bob := w.newPerson("bob")
	_, err = w.ledger.PauseSchedule(t.Context(), bob, s.ID, true)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, _, err = w.ledger.DeleteSchedule(t.Context(), bob, s.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
}

func TestASchedulesRefusedDateStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 2})
	evening := calendar.Interval{Start: time.Date(2026, 3, 4, 20, 0, 0, 0, time.UTC),
		End: time.Date(2026, 3, 4, 21, 0, 0, 0, time.UTC)}
	w.mustReserve(ann, 1, evening) // so that this date is beyond the quota
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	require.Len(t, s.Dates, 8)
	for _, d := range s.Dates {
		if d.Start.Equal(evening.Start) {
			require.Equal(t, ledger.DateRefused, d.State)
			require.Equal(t, "quota_exceeded", d.Reason)
			require.Contains(t, d.Message, "may hold 2 GPUs")
			require.Empty(t, d.ReservationID)
			continue
		}
		require.Equal(t, "booked", d.State)
		require.Equal(t, d.Start, w.readReservation(d.ReservationID).Window.Start)
	}
	w.doDueWork()
	require.Len(t, w.liveOf(s.ID), 7)
	require.Len(t, w.readEvents("schedule.refused"), 1)
	w.pass(3 * time.Hour)
	require.Len(t, w.readEvents("schedule.refused"), 1, "told once")
	dates, err := w.ledger.Dates(t.Context(), ann, s.ID, time.Time{}, time.Time{}, 8)
	require.NoError(t, err)
	require.Equal(t, s.Dates[0], dates[0], "looking later shows what was answered")
	require.Equal(t, s.Dates[2], dates[2])
}

// What no date could ever get is refused when the schedule is made, as the single
// reservation would be; what only some date lacks is not.
func TestAScheduleThatCanNeverBeServedIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world, ledger.Actor, *ledger.Schedule)
		code   admission.Code
	}{
		"more than the pool has": {func(_ *world, _ ledger.Actor, s *ledger.Schedule) { s.GPUs = 9 },
			admission.NoMatchingHardware},
		"longer than a lease": {func(_ *world, _ ledger.Actor, s *ledger.Schedule) { s.Length = 25 * time.Hour },
			admission.WindowTooLong},
		"more than the quota": {func(w *world, by ledger.Actor, _ *ledger.Schedule) {
			_, err := w.setLimits(by, quota.Limits{GPUs: 1}, true)
			require.NoError(w, err)
		}, admission.QuotaExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ann, wish := w.newPerson("ann"), nightlySchedule("lab")
			c.change(w, ann, &wish)
			_, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
			var refused *ledger.RefusedError
			require.ErrorAs(t, err, &refused)
			first := calendar.Interval{Start: time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC),
				End: time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC).Add(wish.Length)}
			_, err = w.ledger.Reserve(t.Context(), ann,
				ledger.ReserveRequest{Pool: "lab", GPUs: wish.GPUs, Window: first})
			var single *ledger.RefusedError
			require.ErrorAs(t, err, &single)
			require.Equal(t, c.code, refused.Decision.Reasons[0].Code)
			require.Equal(t, single.Error(), refused.Error(), "the single request's blocker")
			require.Empty(t, w.readEvents("schedule.created"))
		})
	}
}

func TestASchedulesDatesSayWhatTheyGot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	evening := calendar.Interval{Start: time.Date(2026, 3, 3, 20, 0, 0, 0, time.UTC),
		End: time.Date(2026, 3, 3, 21, 0, 0, 0, time.UTC)}
	w.mustReserve(bob, 8, evening) // the whole pool
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	require.Equal(t, "waitlisted", s.Dates[1].State)
	_, err = w.ledger.CancelReservation(t.Context(), ann, s.Dates[2].ReservationID)
	require.NoError(t, err)

	dates, err := w.ledger.Dates(t.Context(), ann, s.ID, time.Time{}, time.Time{}, 10)
	require.NoError(t, err)
	states := make([]string, 0, len(dates))
	for _, d := range dates {
		states = append(states, d.State)
	}
	require.Equal(t, []string{"booked", "waitlisted", "cancelled", "booked", "booked", "booked", "booked", "booked",
		ledger.DateComing, ledger.DateComing}, states)
	require.Equal(t, dates[8].Start.Add(-8*24*time.Hour), dates[8].AskedAt)

	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.NoError(t, err)
	dates, err = w.ledger.Dates(t.Context(), ann, s.ID, time.Time{}, time.Time{}, 10)
	require.NoError(t, err)
	require.Equal(t, ledger.DatePaused, dates[9].State)
	require.Equal(t, "booked", dates[0].State, "what is booked stays")

	e, err := w.ledger.ExplainSchedule(t.Context(), ann, s.ID)
	require.NoError(t, err)
	require.Equal(t, "schedule", e.Kind)
	require.Contains(t, e.Summary, "the next date is Mon 2 Mar 2026 21:00 +01:00: "+s.Dates[0].ReservationID+
		" is booked")
	w.clock.Set(time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC))
	e, err = w.ledger.ExplainSchedule(t.Context(), ann, s.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "waits for a place")
	require.NotNil(t, e.Refused, "what stands in its way")
	require.Equal(t, admission.CapacityExhausted, e.Refused.Decision.Reasons[0].Code)
	_, err = w.ledger.ExplainSchedule(t.Context(), bob, s.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
}

func TestADeletedScheduleHasNoDates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	s, err := w.ledger.CreateSchedule(t.Context(), ann, nightlySchedule("lab"))
	require.NoError(t, err)
	_, _, err = w.ledger.DeleteSchedule(t.Context(), ann, s.ID)
	require.NoError(t, err)
	_, err = w.ledger.Dates(t.Context(), ann, s.ID, time.Time{}, time.Time{}, 1)
	require.ErrorIs(t, err, ledger.ErrNotFound)
}

// What a paused schedule let pass is missed, what is still to come is paused.
func TestAPausedSchedulesDatesAreMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, wish := w.newPerson("ann"), nightlySchedule("lab")
	wish.StartLocal = "2026-04-02T21:00:00"
	s, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
	require.NoError(t, err)
	_, err = w.ledger.PauseSchedule(t.Context(), ann, s.ID, true)
	require.NoError(t, err)
	w.clock.Set(time.Date(2026, 4, 3, 0, 0, 0, 0, time.UTC))
	dates, err := w.ledger.Dates(t.Context(), ann, s.ID, monday, time.Time{}, 2)
	require.NoError(t, err)
	require.Equal(t, []string{ledger.DateMissed, ledger.DatePaused}, []string{dates[0].State, dates[1].State})
}

// However much was refused, and whatever of it was read at once, each date is told.
func TestManyRefusedDatesAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, wish := w.newPerson("ann"), nightlySchedule("lab")
	wish.StartLocal = "2027-03-02T21:00:00"
	s, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
	require.NoError(t, err)
	first := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	events := make([]ledger.Event, 501)
	for i := range events {
		events[i] = ledger.Event{At: w.clock.Now(), OrganizationID: ann.OrganizationID, Type: "schedule.refused",
			Subject: s.ID, PoolID: w.pool.ID, Reason: "quota_exceeded",
			Message: first.AddDate(0, 0, i).Format(time.DateOnly) + ": too much"}
	}
	require.NoError(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Events: events})
	}))
	last := first.AddDate(0, 0, len(events)-1)
	dates, err := w.ledger.Dates(t.Context(), ann, s.ID, last, last.AddDate(0, 0, 2), 0)
	require.NoError(t, err)
	require.Equal(t, []string{ledger.DateRefused, ledger.DateComing}, []string{dates[0].State, dates[1].State})
	require.Equal(t, "too much", dates[0].Message)
}

func TestTheNextDatesAreToldHoweverFarTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, wish := w.newPerson("ann"), nightlySchedule("lab")
	wish.StartLocal = "2027-10-01T21:00:00"
	s, err := w.ledger.CreateSchedule(t.Context(), ann, wish)
	require.NoError(t, err)
	require.Len(t, s.Dates, 5)
	dates, err := w.ledger.Dates(t.Context(), ann, s.ID, time.Time{}, time.Time{}, 0)
	require.NoError(t, err)
	require.Equal(t, s.Dates, dates)
	require.Equal(t, ledger.DateComing, dates[0].State)
	require.Equal(t, "2027-10-01", dates[0].Date)
	e, err := w.ledger.ExplainSchedule(t.Context(), ann, s.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "not requested yet")
	require.Nil(t, e.Refused)
}

func TestSchedulesThatCanNeverBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	for field, change := range map[string]func(*ledger.Schedule){
		"gpus":             func(s *ledger.Schedule) { s.GPUs = 0 },
		"timezone":         func(s *ledger.Schedule) { s.Timezone = "Mars/Olympus" },
		"rrule":            func(s *ledger.Schedule) { s.RRule = "FREQ=SECONDLY" },
		"pool":             func(s *ledger.Schedule) { s.PoolID = "nowhere" },
		"duration_seconds": func(s *ledger.Schedule) { s.Length = 0 },
	} {
		s := nightlySchedule("lab")
		change(&s)
		_, err := w.ledger.CreateSchedule(t.Context(), ann, s)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}
