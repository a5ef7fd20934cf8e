package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// Materialisation in bounded steps: a schedule that fires often must not fill
// one transaction, nor hold up the others.
const (
	materialiseEvery = time.Hour
	materialiseMost  = 500
)

// Materialise books what schedules ask for in the time ahead. Each occurrence
// has an id derived from its schedule and local date, so it is booked once
// however often this runs and whoever runs it.
func (l Booking) Materialise(ctx context.Context, g Guard) error {
	var due []Schedule
	var now time.Time
	err := l.store.Read(ctx, func(r Reader) error {
		var err error
		now, due = r.Now(), nil
		for after := ""; ; {
			page, err2 := r.Schedules(Scope{All: true}, Page{After: after, Limit: 500})
			if err = err2; err != nil || len(page) == 0 {
				return err
			}
			due = append(due, page...)
			after = page[len(page)-1].ID
		}
	})
	if err != nil {
		return fmt.Errorf("listing schedules: %w", err)
	}
	again := now.Add(materialiseEvery)
	for _, s := range due {
		if s.Paused {
			continue
		}
		more, err := materialiseSchedule(ctx, l.engine, s, now)
		if err != nil {
			return fmt.Errorf("materialising %s: %w", s.ID, err)
		}
		if more {
			again = now
		}
	}
	return l.store.InTx(ctx, func(tx Tx) error { return tx.Finish(g, again, "") })
}

// materialiseSchedule books one schedule's occurrences and reports whether there are
// more to book now.
func materialiseSchedule(ctx context.Context, l *engine, s Schedule, now time.Time) (more bool, err error) {
	rule, err := recurrence.Parse(s.Spec())
	if err != nil {
		return false, nil // a rule that no longer parses (a zone was dropped) is shown by the API, and stops nothing
	}
	var actor Actor
	if err := l.store.Read(ctx, func(r Reader) error { actor, err = scheduleActor(r, s); return err }); err != nil {
		return false, err
	}
	from, to := s.DoneUntil, now.Add(l.cfg.aheadFor(actor))
	if from.Before(now) {
		from = now
	}
	found := rule.Between(from, to, materialiseMost)
	for _, o := range found {
		switch err := bookOccurrence(ctx, l, actor, s, o); {
		case errors.Is(err, ErrRecovering):
			return false, nil // its dates are booked when an operator has confirmed
		case err != nil:
			return false, err
		}
	}
	more = len(found) == materialiseMost
	if more {
		to = found[len(found)-1].Start.Add(time.Microsecond)
	}
	if to.Sub(s.DoneUntil) < materialiseEvery/2 {
		return more, nil
	}
	s.DoneUntil = to
	err = l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		tx.change.Schedules = append(tx.change.Schedules, s)
		return nil
	})
	if errors.Is(err, ErrConflict) { // it was changed meanwhile: the next run sees that
		return false, nil
	}
	return more, err
}

// scheduleActor is who books for a schedule: the schedule itself, under the caps
// of the key that made it and of all that this rests on.
func scheduleActor(r identities, s Schedule) (Actor, error) {
	makers, err := scheduleBounds(r, s)
	return Actor{KeyID: s.ID, Kind: PersonKey, OrganizationID: s.OrganizationID, Role: Member, Via: "schedule",
		Makers: makers}, err
}

// aheadFor is how far ahead an actor's dates are booked: no further than its caps
// allow, or each date would be asked for too early, refused, and never asked for
// again.
func (c Config) aheadFor(actor Actor) time.Duration {
	ahead := c.Ahead
	for _, bound := range actor.Makers {
		ahead = min(ahead, bound.Caps.MaxLead)
	}
	return ahead
}

// reserveRequest asks for one date of a schedule. Its id is derived, so that the date is
// booked once.
func (s Schedule) reserveRequest(o recurrence.Occurrence) ReserveRequest {
	return ReserveRequest{
		Pool: s.PoolID, GPUs: s.GPUs, Layout: s.Layout, Window: calendar.Interval{Start: o.Start, End: o.End},
		Name: s.Name + " " + o.Date, Queue: true,
		id: s.reservationID(o), source: reservation.FromSchedule, madeBy: s.ID,
	}
}

func (s Schedule) reservationID(o recurrence.Occurrence) string {
	return ids.Derived(ids.Reservation, s.ID, o.Date)
}

func bookOccurrence(ctx context.Context, l *engine, actor Actor, s Schedule, o recurrence.Occurrence) error {
	_, err := Booking{l}.Reserve(ctx, actor, s.reserveRequest(o))
	if errors.Is(err, ErrTaken) {
		return nil
	}
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return err
	}
	return l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		refusedDate(tx, s, o, refused)
		return nil
	})
}

// refusedDate notes that a date of a schedule got nothing, and why.
func refusedDate(tx *groupTx, s Schedule, o recurrence.Occurrence, refused *RefusedError) {
	tx.addEvent(Event{OrganizationID: s.OrganizationID, Type: dateRefused, Subject: s.ID, PoolID: s.PoolID,
		Reason: string(refused.Decision.Reasons[0].Code), Message: o.Date + dateEnds + clipText(refused.Error(), 200)})
}

// How a date that was refused stands in the journal: its message begins with the
// local date.
const (
	dateRefused = "schedule.refused"
	dateEnds    = ": "
)

// firstDates is how many dates a schedule may book in the transaction that makes it.
const firstDates = 31

// bookFirst books the coming dates of a schedule that is being made, and says
// what each got.
func bookFirst(tx *groupTx, p *poolTx, h *holding, s *Schedule, rule recurrence.Rule) ([]ScheduleDate, error) {
	to := tx.now().Add(tx.cfg.aheadFor(tx.actor))
	found := rule.Between(tx.now(), to, firstDates)
	if len(found) == firstDates {
		to = found[len(found)-1].Start.Add(time.Microsecond)
	}
	dates := make([]ScheduleDate, 0, len(found))
	for _, o := range found {
		date, err := bookDate(tx, p, h, *s, o)
		if errors.Is(err, ErrRecovering) {
			return dates, nil // its dates are booked when an operator has confirmed
		}
		if err != nil {
			return nil, err
		}
		dates = append(dates, date)
	}
	s.DoneUntil = to
	for _, o := range rule.Between(to, to.Add(furthestDate), nextDates-len(dates)) {
		dates = append(dates, s.laterDate(o, tx.cfg.aheadFor(tx.actor)))
	}
	return dates, nil
}

func bookDate(tx *groupTx, p *poolTx, h *holding, s Schedule, o recurrence.Occurrence) (ScheduleDate, error) {
	r, err := reserveFirst(tx, []*poolTx{p}, h, s.reserveRequest(o))
	if err == nil {
		return s.bookedDate(o, r), nil
	}
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return ScheduleDate{}, err
	}
	tx.journalRefusal(refused)
	refusedDate(tx, s, o, refused)
	return refusedFor(o, string(refused.Decision.Reasons[0].Code), refused.Error()), nil
}

// checkEverServed refuses a schedule of which no date could ever be booked: not in an
// empty pool, by somebody who holds nothing.
func checkEverServed(tx *groupTx, p *poolTx, h *holding, s Schedule, rule recurrence.Rule) error {
	first := rule.Between(tx.now(), tx.now().Add(furthestDate), 1)
	if len(first) == 0 {
		return &InvalidError{Field: recurrence.FieldRRule, Rule: "must have a date that is still to come",
			Fix: "choose a later until, or leave it out"}
	}
	shape, _ := s.Layout.Shape(s.GPUs, p.Pool.PerNode)
	ask := admission.Request{Class: reservation.Guaranteed, Shape: shape,
		Window: calendar.Interval{Start: first[0].Start, End: first[0].End}}
	v := admissionView(tx, p, h, nil)
	v.Now = ask.Window.Start.Add(-materialiseEvery) // as late as a date is sure to be asked for
	v.PoolView = admission.PoolView{Pool: p.Pool.Pool, Slots: calendar.NewSlots(p.Pool.MaxNodes, p.Pool.PerNode)}
	v.Committed, v.SpeculativeCommitments, v.Key.Spent, v.User.Spent = nil, nil, nil, nil
	for i := range v.Makers {
		v.Makers[i].Spent = nil
	}
	v.Cohort = nil
	for _, m := range h.cohort {
		v.Cohort = append(v.Cohort, quota.Member{Limits: m.Limits})
	}
	d := judgeRequest(ask, v)
	if d.Accepted() {
		return nil
	}
	d.Offers = nil // they would be single dates
	return refuseRequest(tx, p, s.OrganizationID, "schedule", d)
}
