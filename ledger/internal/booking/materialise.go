package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
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
func (l Booking) Materialise(ctx context.Context, g ledger.Guard) error {
	var due []ledger.Schedule
	var now time.Time
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		var err error
		now, due = r.Now(), nil
		for after := ""; ; {
			page, err2 := r.Schedules(ledger.Scope{All: true}, ledger.Page{After: after, Limit: 500})
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
		more, err := materialiseSchedule(ctx, l.Engine, s, now)
		if err != nil {
			return fmt.Errorf("materialising %s: %w", s.ID, err)
		}
		if more {
			again = now
		}
	}
	return l.InGroup(ctx, ledger.SystemActor("planner"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.FinishTask(g, again)
		return nil
	})
}

// materialiseSchedule books one schedule's occurrences and reports whether there are
// more to book now.
func materialiseSchedule(ctx context.Context, l *txn.Engine, s ledger.Schedule, now time.Time) (more bool, err error) {
	rule, err := recurrence.Parse(s.Spec())
	if err != nil {
		return false, nil // a rule that no longer parses (a zone was dropped) is shown by the API, and stops nothing
	}
	var actor ledger.Actor
	if err := l.Store.Read(ctx, func(r ledger.Reader) error {
		actor,
			err = ScheduleActor(r, s)
		return err
	}); err != nil {
		return false, err
	}
	from, to := s.DoneUntil, now.Add(l.Config.AheadFor(actor))
	if from.Before(now) {
		from = now
	}
	found := rule.Between(from, to, materialiseMost)
	for _, o := range found {
		switch err := bookOccurrence(ctx, l, actor, s, o); {
		case errors.Is(err, ledger.ErrRecovering):
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
	err = l.InGroup(ctx, actor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.Change.Schedules = append(tx.Change.Schedules, s)
		return nil
	})
	if errors.Is(err, ledger.ErrConflict) { // it was changed meanwhile: the next run sees that
		return false, nil
	}
	return more, err
}

// ScheduleActor is who books for a schedule: the schedule itself, under the caps
// of the key that made it and of all that this rests on.
func ScheduleActor(r tenancy.Identities, s ledger.Schedule) (ledger.Actor, error) {
	makers, err := scheduleBounds(r, s)
	return ledger.Actor{KeyID: s.ID, Kind: ledger.PersonKey, OrganizationID: s.OrganizationID, Role: ledger.Member,
		Via:    "schedule",
		Makers: makers}, err
}

func bookOccurrence(ctx context.Context, l *txn.Engine, actor ledger.Actor, s ledger.Schedule,
	o recurrence.Occurrence) error {
	_, err := Booking{Engine: l}.Reserve(ctx, actor, s.ReserveRequest(o))
	if errors.Is(err, ledger.ErrTaken) {
		return nil
	}
	refused, ok := errors.AsType[*ledger.RefusedError](err)
	if !ok {
		return err
	}
	return l.InGroup(ctx, actor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		refusedDate(tx, s, o, refused)
		return nil
	})
}

// refusedDate notes that a date of a schedule got nothing, and why.
func refusedDate(tx *txn.Tx, s ledger.Schedule, o recurrence.Occurrence, refused *ledger.RefusedError) {
	tx.AddEvent(ledger.Event{OrganizationID: s.OrganizationID, Type: dateRefused, Subject: s.ID, PoolID: s.PoolID,
		Reason: string(refused.Decision.Reasons[0].Code), Message: o.Date + dateEnds +
			ledger.ClipText(refused.Error(), 200)})
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
func bookFirst(tx *txn.Tx, p *txn.PoolTx, h *holding, s *ledger.Schedule, rule recurrence.Rule) (
	[]ledger.ScheduleDate, error) {
	to := tx.Now().Add(tx.Config.AheadFor(tx.Actor))
	found := rule.Between(tx.Now(), to, firstDates)
	if len(found) == firstDates {
		to = found[len(found)-1].Start.Add(time.Microsecond)
	}
	dates := make([]ledger.ScheduleDate, 0, len(found))
	for _, o := range found {
		date, err := bookDate(tx, p, h, *s, o)
		if errors.Is(err, ledger.ErrRecovering) {
			return dates, nil // its dates are booked when an operator has confirmed
		}
		if err != nil {
			return nil, err
		}
		dates = append(dates, date)
	}
	s.DoneUntil = to
	for _, o := range rule.Between(to, to.Add(furthestDate), nextDates-len(dates)) {
		dates = append(dates, s.LaterDate(o, tx.Config.AheadFor(tx.Actor)))
	}
	return dates, nil
}

func bookDate(tx *txn.Tx, p *txn.PoolTx, h *holding, s ledger.Schedule, o recurrence.Occurrence) (
	ledger.ScheduleDate, error) {
	r, err := reserveFirst(tx, []*txn.PoolTx{p}, h, s.ReserveRequest(o))
	if err == nil {
		return s.BookedDate(o, r), nil
	}
	refused, ok := errors.AsType[*ledger.RefusedError](err)
	if !ok {
		return ledger.ScheduleDate{}, err
	}
	tx.JournalRefusal(refused)
	refusedDate(tx, s, o, refused)
	return refusedFor(o, string(refused.Decision.Reasons[0].Code), refused.Error()), nil
}

// checkEverServed refuses a schedule of which no date could ever be booked: not in an
// empty pool, by somebody who holds nothing.
func checkEverServed(tx *txn.Tx, p *txn.PoolTx, h *holding, s ledger.Schedule, rule recurrence.Rule) error {
	first := rule.Between(tx.Now(), tx.Now().Add(furthestDate), 1)
	if len(first) == 0 {
		return &ledger.InvalidError{Field: recurrence.FieldRRule, Rule: "must have a date that is still to come",
			Fix: "choose a later until, or leave it out"}
	}
	shape, _ := p.Pool.ShapeOf(s.Layout, s.GPUs)
	ask := admission.Request{Class: reservation.Guaranteed, Shape: shape,
		Window: calendar.Interval{Start: first[0].Start, End: first[0].End}}
	v := emptyView(tx, p, h)
	v.Now = ask.Window.Start.Add(-materialiseEvery) // as late as a date is sure to be asked for
	d := txn.JudgeRequest(ask, v)
	if d.Accepted() {
		return nil
	}
	d.Offers = nil // they would be single dates
	return txn.RefuseRequest(tx, p, s.OrganizationID, "schedule", d)
}

// emptyView is what a pool is to an organization if nobody has anything.
func emptyView(tx *txn.Tx, p *txn.PoolTx, h *holding) admission.View {
	v := admissionView(tx, p, h, nil)
	v.PoolView = admission.PoolView{Pool: p.Pool.Pool, Slots: calendar.Build(p.Pool.Pool)}
	v.Committed, v.SpeculativeCommitments, v.Key.Spent, v.User.Spent = nil, nil, nil, nil
	for i := range v.Makers {
		v.Makers[i].Spent = nil
	}
	v.Cohort = nil
	for _, m := range h.cohort {
		v.Cohort = append(v.Cohort, quota.Member{Limits: m.Limits})
	}
	return v
}
