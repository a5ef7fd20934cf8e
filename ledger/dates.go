package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// What may have become of a schedule's date that has no reservation. One that
// has is in the reservation's state.
const (
	DateComing  = "coming"  // it is not asked for yet
	DatePaused  = "paused"  // it will not be asked for unless the schedule is resumed
	DateRefused = "refused" // it was asked for and got nothing
	DateMissed  = "missed"  // it was never asked for, and is not any more
)

// ScheduleDate is one date of a schedule, and what became of it.
type ScheduleDate struct {
	recurrence.Occurrence
	State         string // of its reservation, or one of the Date constants
	ReservationID string // empty: it has none
	Degraded      bool
	Cost          money.MicroUSD // of its reservation
	Reason        string         // a code; may be empty
	Message       string         // for people; may be empty
	AskedAt       time.Time      // about when it is asked for; zero: it was, or never is
}

// Dates are listed as far ahead as a rule is run, and that many unless asked.
const (
	furthestDate = 10 * 366 * 24 * time.Hour
	nextDates    = 5
)

func (s Schedule) bookedDate(o recurrence.Occurrence, r reservation.Reservation) ScheduleDate {
	return ScheduleDate{Occurrence: o, State: string(r.State()), ReservationID: r.ID, Degraded: r.Degraded,
		Cost: r.Cost, Reason: r.Reason}
}

func (s Schedule) laterDate(o recurrence.Occurrence, ahead time.Duration) ScheduleDate {
	return ScheduleDate{Occurrence: o, State: DateComing, AskedAt: o.Start.Add(-ahead)}
}

func refusedFor(o recurrence.Occurrence, code, message string) ScheduleDate {
	return ScheduleDate{Occurrence: o, State: DateRefused, Reason: code, Message: message}
}

// Dates lists the dates of a visible schedule that start in [from, to), at most
// limit of them, and what became of each. A zero to is as far ahead as there are
// any; a limit of 0 is the next few.
func (l Booking) Dates(ctx context.Context, actor Actor, id string, from, to time.Time,
	limit int) ([]ScheduleDate, error) {
	var dates []ScheduleDate
	err := l.store.Read(ctx, func(r Reader) error {
		s, err := liveSchedule(r, actor.Scope(), id)
		if err != nil {
			return err
		}
		if from.IsZero() {
			from = r.Now()
		}
		dates, err = readDates(l.engine, r, s, from, to, limit)
		return err
	})
	return dates, err
}

func liveSchedule(r Reader, scope Scope, id string) (Schedule, error) {
	s, err := r.Schedule(scope, id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ErrNotFound
	}
	return s, err
}

func readDates(l *engine, r Reader, s Schedule, from, to time.Time, limit int) ([]ScheduleDate, error) {
	if to.IsZero() {
		to = from.Add(furthestDate)
	}
	if limit == 0 {
		limit = nextDates
	}
	found, err := s.Spec().Between(from, to, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	b := dateBook{r: r, s: s}
	if b.refused, err = refusedDates(r, s); err != nil {
		return nil, err
	}
	who, err := scheduleActor(r, s)
	if err != nil {
		return nil, err
	}
	b.ahead = l.cfg.aheadFor(who)
	dates := make([]ScheduleDate, len(found))
	for i, o := range found {
		if dates[i], err = b.dateFor(o); err != nil {
			return nil, err
		}
	}
	return dates, nil
}

// dateBook looks up what became of a schedule's dates.
type dateBook struct {
	r       Reader
	s       Schedule
	ahead   time.Duration
	refused map[string]Event // by local date
}

func (b dateBook) dateFor(o recurrence.Occurrence) (ScheduleDate, error) {
	r, err := b.r.Reservation(Scope{OrganizationID: b.s.OrganizationID}, b.s.reservationID(o))
	if err == nil {
		return b.s.bookedDate(o, r), nil
	}
	if !errors.Is(err, ErrNotFound) {
		return ScheduleDate{}, fmt.Errorf("reading the reservation of a date: %w", err)
	}
	if e, ok := b.refused[o.Date]; ok {
		_, message, _ := strings.Cut(e.Message, dateEnds)
		return refusedFor(o, e.Reason, message), nil
	}
	switch {
	case o.Start.Before(b.s.DoneUntil) || o.Start.Before(b.r.Now()):
		return ScheduleDate{Occurrence: o, State: DateMissed}, nil
	case b.s.Paused:
		return ScheduleDate{Occurrence: o, State: DatePaused}, nil
	default:
		return b.s.laterDate(o, b.ahead), nil
	}
}

// refusedDates reads from the journal which dates got nothing.
func refusedDates(r Reader, s Schedule) (map[string]Event, error) {
	const page = 500
	found := map[string]Event{}
	for after := int64(0); ; {
		events, err := r.Events(Scope{OrganizationID: s.OrganizationID},
			EventFilter{After: after, Subject: s.ID, Type: dateRefused}, page)
		if err != nil {
			return nil, fmt.Errorf("reading which dates were refused: %w", err)
		}
		for _, e := range events {
			date, _, _ := strings.Cut(e.Message, dateEnds)
			found[date], after = e, e.Seq
		}
		if len(events) < page {
			return found, nil
		}
	}
}
