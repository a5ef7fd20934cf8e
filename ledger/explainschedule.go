package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
)

// ExplainSchedule explains a schedule that the actor may see by its next date:
// what that got and what stands in its way, or what would become of it now.
func (l Reporting) ExplainSchedule(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var s Schedule
	var dates []ScheduleDate
	e := Explanation{Kind: "schedule", Subject: id}
	err := l.store.Read(ctx, func(r Reader) (err error) {
		if s, err = liveSchedule(r, actor.Scope(), id); err != nil {
			return err
		}
		e.At, e.PoolID, e.Since = r.Now(), s.PoolID, s.CreatedAt
		if dates, err = readDates(l.engine, r, s, e.At, time.Time{}, 1); err != nil {
			return err
		}
		e.Decisions, err = r.Decisions(actor.Scope(), DecisionFilter{Subject: id}, recentDecisions)
		return err
	})
	if err != nil {
		return e, err
	}
	e.State = "active"
	if s.Paused {
		e.State = DatePaused
	}
	if len(dates) == 0 {
		e.State, e.Summary = "ended", "it has no date to come"
		return e, nil
	}
	return explainDate(ctx, l.engine, actor, s, dates[0], e)
}

// explainDate adds the next date to what is known of its schedule.
func explainDate(ctx context.Context, l *engine, actor Actor, s Schedule, d ScheduleDate,
	e Explanation) (Explanation, error) {
	e.Summary = fmt.Sprintf("the next date is %s: %s", d.LocalStart.Format("Mon 2 Jan 2006 15:04 -07:00"), d.describeDate())
	e.Reason, e.Degraded = d.Reason, d.Degraded
	if d.ReservationID != "" {
		r, err := Reporting{l}.ExplainReservation(ctx, actor, d.ReservationID)
		if err != nil {
			return e, err
		}
		e.Blockers, e.Refused, e.Instead, e.Wait, e.Next = r.Blockers, r.Refused, r.Instead, r.Wait, r.Next
		e.Decisions = append(e.Decisions, r.Decisions...)
		return e, nil
	}
	if !d.AskedAt.IsZero() {
		e.Next = append(e.Next, Step{Code: "ask", At: laterOf(d.AskedAt, e.At), Message: "it is asked for"})
	}
	e.Next = append(e.Next, Step{Code: "start", At: d.Start, Message: "its time begins"})
	var err error
	e.Refused, err = dateRefusedNow(ctx, l, s, d)
	if err == nil && e.Refused == nil && d.State == DateRefused {
		e.Summary += "; it would get its place now, but is not asked for again: reserve it by itself"
	}
	return e, err
}

// describeDate tells in a few words what became of a date.
func (d ScheduleDate) describeDate() string {
	switch d.State {
	case DateComing:
		return "not asked for yet"
	case DatePaused:
		return "not asked for while the schedule is paused"
	case DateMissed:
		return "never asked for"
	case DateRefused:
		return "refused: " + d.Message
	case string(reservation.Waitlisted):
		return d.ReservationID + " waits for a place"
	default:
		return d.ReservationID + " is " + d.State
	}
}

// dateRefusedNow asks what a date would be told if it were asked for now; nil
// means that it would get its place.
func dateRefusedNow(ctx context.Context, l *engine, s Schedule, d ScheduleDate) (*RefusedError, error) {
	var who Actor
	err := l.store.Read(ctx, func(r Reader) (err error) {
		who, err = scheduleActor(r, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range who.Makers { // it is asked for as late as they demand
		who.Makers[i].Caps.MaxLead = max(who.Makers[i].Caps.MaxLead, d.Start.Sub(readNow(ctx, l)))
	}
	_, _, err = Previews{l}.DryRun(ctx, who, func(ctx context.Context, l *Ledger) (int, []byte, error) {
		_, err := l.Reserve(ctx, who, ReserveRequest{Pool: s.PoolID, GPUs: s.GPUs, Layout: s.Layout, madeBy: s.ID,
			Window: calendar.Interval{Start: d.Start, End: d.End}, source: reservation.FromSchedule})
		return 0, nil, err
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}
