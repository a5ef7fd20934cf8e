package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/preview"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ExplainSchedule explains a schedule that the actor may see by its next date:
// what that got and what stands in its way, or what would become of it now.
func (l Reporting) ExplainSchedule(ctx context.Context, actor ledger.Actor, id string) (ledger.Explanation, error) {
	var s ledger.Schedule
	var dates []ledger.ScheduleDate
	e := ledger.Explanation{Kind: "schedule", Subject: id}
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if s, err = booking.LiveSchedule(r, actor.Scope(), id); err != nil {
			return err
		}
		e.At, e.PoolID, e.Since = r.Now(), s.PoolID, s.CreatedAt
		if dates, err = booking.ReadDates(l.Engine, r, s, e.At, time.Time{}, 1); err != nil {
			return err
		}
		e.Decisions, err = r.Decisions(actor.Scope(), ledger.DecisionFilter{Subject: id}, recentDecisions)
		return err
	})
	if err != nil {
		return e, err
	}
	e.State = "active"
	if s.Paused {
		e.State = ledger.DatePaused
	}
	if len(dates) == 0 {
		e.State, e.Summary = "ended", "it has no date to come"
		return e, nil
	}
	return explainDate(ctx, l.Engine, actor, s, dates[0], e)
}

// explainDate adds the next date to what is known of its schedule.
func explainDate(ctx context.Context, l *txn.Engine, actor ledger.Actor, s ledger.Schedule, d ledger.ScheduleDate,
	e ledger.Explanation) (ledger.Explanation, error) {
	e.Summary = fmt.Sprintf("the next date is %s: %s", d.LocalStart.Format("Mon 2 Jan 2006 15:04 -07:00"),
		d.DescribeDate())
	e.Reason, e.Degraded = d.Reason, d.Degraded
	if d.ReservationID != "" {
		r, err := Reporting{Engine: l}.ExplainReservation(ctx, actor, d.ReservationID)
		if err != nil {
			return e, err
		}
		e.Blockers, e.Refused, e.Instead, e.Wait, e.Next = r.Blockers, r.Refused, r.Instead, r.Wait, r.Next
		e.Decisions = append(e.Decisions, r.Decisions...)
		return e, nil
	}
	if !d.AskedAt.IsZero() {
		e.Next = append(e.Next, ledger.Step{Code: "ask", At: fleet.LaterOf(d.AskedAt, e.At),
			Message: "it is requested"})
	}
	e.Next = append(e.Next, ledger.Step{Code: "start", At: d.Start, Message: "its window begins"})
	var err error
	e.Refused, err = dateRefusedNow(ctx, l, s, d)
	if err == nil && e.Refused == nil && d.State == ledger.DateRefused {
		e.Summary += "; it would get its place now, but is not requested again: reserve it separately"
	}
	return e, err
}

// dateRefusedNow asks what a date would be told if it were asked for now; nil
// means that it would get its place.
func dateRefusedNow(ctx context.Context, l *txn.Engine, s ledger.Schedule, d ledger.ScheduleDate) (
	*ledger.RefusedError, error) {
	var who ledger.Actor
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		who, err = booking.ScheduleActor(r, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range who.Makers { // it is asked for as late as they demand
		who.Makers[i].Caps.MaxLead = max(who.Makers[i].Caps.MaxLead, d.Start.Sub(readNow(ctx, l)))
	}
	_, _, err = preview.Previews{Engine: l}.DryRun(ctx, who,
		func(ctx context.Context, l *txn.Engine) (int, []byte, error) {
			_, err := booking.Booking{Engine: l}.Reserve(ctx, who,
				ledger.ReserveRequest{Pool: s.PoolID, GPUs: s.GPUs, Layout: s.Layout, MadeBy: s.ID,
					Window: calendar.Interval{Start: d.Start, End: d.End}, Origin: reservation.FromSchedule})
			return 0, nil, err
		})
	var refused *ledger.RefusedError
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}
