package booking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// Dates are listed as far ahead as a rule is run, and that many unless asked.
const (
	furthestDate = 10 * 366 * 24 * time.Hour
	nextDates    = 5
)

func refusedFor(o recurrence.Occurrence, code, message string) ledger.ScheduleDate {
	return ledger.ScheduleDate{Occurrence: o, State: ledger.DateRefused, Reason: code, Message: message}
}

// Dates lists the dates of a visible schedule that start in [from, to), at most
// limit of them, and what became of each. A zero to is as far ahead as there are
// any; a limit of 0 is the next few.
func (l Booking) Dates(ctx context.Context, actor ledger.Actor, id string, from, to time.Time,
	limit int) ([]ledger.ScheduleDate, error) {
	var dates []ledger.ScheduleDate
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		s, err := LiveSchedule(r, actor.Scope(), id)
		if err != nil {
			return err
		}
		if from.IsZero() {
			from = r.Now()
		}
		dates, err = ReadDates(l.Engine, r, s, from, to, limit)
		return err
	})
	return dates, err
}

// LiveSchedule reads a schedule. One that is deleted is ledger.ErrNotFound.
func LiveSchedule(r ledger.Reader, scope ledger.Scope, id string) (ledger.Schedule, error) {
	s, err := r.Schedule(scope, id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ledger.ErrNotFound
	}
	return s, err
}

// ReadDates lists the dates of a schedule that start in [from, to), and what
// became of each.
func ReadDates(l *txn.Engine, r ledger.Reader, s ledger.Schedule, from, to time.Time, limit int) (
	[]ledger.ScheduleDate, error) {
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
	who, err := ScheduleActor(r, s)
	if err != nil {
		return nil, err
	}
	b.ahead = l.Config.AheadFor(who)
	dates := make([]ledger.ScheduleDate, len(found))
	for i, o := range found {
		if dates[i], err = b.dateFor(o); err != nil {
			return nil, err
		}
	}
	return dates, nil
}

// dateBook looks up what became of a schedule's dates.
type dateBook struct {
	r       ledger.Reader
	s       ledger.Schedule
	ahead   time.Duration
	refused map[string]ledger.Event // by local date
}

func (b dateBook) dateFor(o recurrence.Occurrence) (ledger.ScheduleDate, error) {
	r, err := b.r.Reservation(ledger.Scope{OrganizationID: b.s.OrganizationID}, b.s.ReservationID(o))
	if err == nil {
		return b.s.BookedDate(o, r), nil
	}
	if !errors.Is(err, ledger.ErrNotFound) {
		return ledger.ScheduleDate{}, fmt.Errorf("reading the reservation of a date: %w", err)
	}
	if e, ok := b.refused[o.Date]; ok {
		_, message, _ := strings.Cut(e.Message, dateEnds)
		return refusedFor(o, e.Reason, message), nil
	}
	switch {
	case o.Start.Before(b.s.DoneUntil) || o.Start.Before(b.r.Now()):
		return ledger.ScheduleDate{Occurrence: o, State: ledger.DateMissed}, nil
	case b.s.Paused:
		return ledger.ScheduleDate{Occurrence: o, State: ledger.DatePaused}, nil
	default:
		return b.s.LaterDate(o, b.ahead), nil
	}
}

// refusedDates reads from the journal which dates got nothing.
func refusedDates(r ledger.Reader, s ledger.Schedule) (map[string]ledger.Event, error) {
	const page = 500
	found := map[string]ledger.Event{}
	for after := int64(0); ; {
		events, err := r.Events(ledger.Scope{OrganizationID: s.OrganizationID},
			ledger.EventFilter{After: after, Subject: s.ID, Type: dateRefused}, page)
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
