package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
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

// Spec is the schedule's rule as it was written.
func (s Schedule) Spec() recurrence.Spec {
	return recurrence.Spec{
		StartLocal: s.StartLocal, Timezone: s.Timezone, RRule: s.RRule, ExDates: s.ExDates, Length: s.Length,
		Policy: recurrence.Policy(s.DSTPolicy),
	}
}

// CreateSchedule stores a schedule; its reservations follow within moments.
func (l *Ledger) CreateSchedule(ctx context.Context, actor Actor, s Schedule) (Schedule, error) {
	err := checkSchedule(s)
	if err == nil {
		s.GPUs, err = laidOut(s.GPUs, s.Layout)
	}
	if err != nil {
		return s, err
	}
	err = l.do(ctx, actor, func(u *unit) error {
		var err error
		if s.OrganizationID, err = actor.holder(); err != nil {
			return err
		}
		if err := u.checkFree("name", s.Name); err != nil {
			return err
		}
		p, err := u.livePool(s.PoolID) // under its lock: one that is being deleted must not get another schedule
		if errors.Is(err, ErrNotFound) {
			return noPool(s.PoolID)
		}
		if err != nil {
			return err
		}
		pool := p.Pool
		if s.Length > pool.Timers.MaxLease {
			return &InvalidError{Field: "duration_seconds", Rule: fmt.Sprintf("must be at most %d in this pool", pool.Timers.MaxLease/time.Second)}
		}
		s.ID, s.PoolID, s.MadeBy, s.CreatedAt, s.Version = u.ids.New(ids.Schedule), pool.ID, actor.KeyID, u.now(), 0
		u.change.Schedules = append(u.change.Schedules, s)
		u.keyed(schedulesKey, TaskSchedules, "all")
		u.wake = append(u.wake, schedulesKey)
		u.event(Event{OrganizationID: s.OrganizationID, Type: "schedule.created", Subject: s.ID, PoolID: s.PoolID,
			Message: fmt.Sprintf("%d GPUs, %s %s", s.GPUs, s.RRule, s.Timezone)})
		return nil
	})
	s.Version = 1
	return s, err
}

// example is advice to write a value like another; empty when there is none.
func example(value string) string {
	if value == "" {
		return ""
	}
	return "write it as in " + value
}

func checkSchedule(s Schedule) error {
	if err := checkName("name", s.Name); err != nil {
		return err
	}
	if _, err := recurrence.Parse(s.Spec()); err != nil {
		if re := (*recurrence.Error)(nil); errors.As(err, &re) {
			return &InvalidError{Field: re.Field, Rule: re.Rule, Fix: example(re.Fix)}
		}
		return err
	}
	return nil
}

// schedule reads a schedule that the actor may see and that is not deleted.
func (u *unit) schedule(id string) (Schedule, error) {
	s, err := u.tx.Schedule(u.actor.Scope(), id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ErrNotFound
	}
	return s, err
}

// PauseSchedule stops or resumes a schedule. What it has booked already stays.
func (l *Ledger) PauseSchedule(ctx context.Context, actor Actor, id string, paused bool) (Schedule, error) {
	var s Schedule
	err := l.do(ctx, actor, func(u *unit) error {
		var err error
		if s, err = u.schedule(id); err != nil {
			return err
		}
		s.Paused = paused
		u.change.Schedules = append(u.change.Schedules, s)
		u.wake = append(u.wake, schedulesKey)
		what := map[bool]string{true: "schedule.paused", false: "schedule.resumed"}[paused]
		u.event(Event{OrganizationID: s.OrganizationID, Type: what, Subject: s.ID, PoolID: s.PoolID, Message: s.Name})
		return nil
	})
	s.Version++
	return s, err
}

// DeleteSchedule ends a schedule and cancels what it booked and nobody claimed.
func (l *Ledger) DeleteSchedule(ctx context.Context, actor Actor, id string) error {
	return l.do(ctx, actor, func(u *unit) error {
		s, err := u.schedule(id)
		if err != nil {
			return err
		}
		if _, _, err := u.lockSharers(s.OrganizationID); err != nil {
			return fmt.Errorf("locking organization: %w", err)
		}
		p, err := u.lockPool(s.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		for r := range p.reservations.all() {
			if r.MadeBy != s.ID || !r.Live() {
				continue
			}
			if _, err := u.stepReservation(p, r, reservation.Cancel, "schedule_deleted", "its schedule was deleted"); err != nil {
				return err
			}
			u.rest(p, r.Slots)
		}
		s.DeletedAt = u.now()
		u.change.Schedules = append(u.change.Schedules, s)
		u.wakePlan(p.Pool.ID)
		u.event(Event{OrganizationID: s.OrganizationID, Type: "schedule.deleted", Subject: s.ID, PoolID: s.PoolID, Message: s.Name})
		return nil
	})
}

// Materialise books what schedules ask for in the time ahead. Each occurrence
// has an id derived from its schedule and local date, so it is booked once
// however often this runs and whoever runs it.
func (l *Ledger) Materialise(ctx context.Context, g Guard) error {
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
		more, err := l.materialise(ctx, s, now)
		if err != nil {
			return fmt.Errorf("materialising %s: %w", s.ID, err)
		}
		if more {
			again = now
		}
	}
	return l.store.InTx(ctx, func(_ context.Context, tx Tx) error { return tx.Finish(g, again, "") })
}

// materialise books one schedule's occurrences and reports whether there are
// more to book now.
func (l *Ledger) materialise(ctx context.Context, s Schedule, now time.Time) (more bool, err error) {
	rule, err := recurrence.Parse(s.Spec())
	if err != nil {
		return false, nil // a rule that no longer parses (a zone was dropped) is shown by the API, and stops nothing
	}
	from, to := s.DoneUntil, now.Add(l.cfg.Ahead)
	if from.Before(now) {
		from = now
	}
	found := rule.Between(from, to, materialiseMost)
	actor := Actor{KeyID: s.ID, Kind: PersonKey, OrganizationID: s.OrganizationID, Role: Member, Via: "schedule"}
	if err := l.store.Read(ctx, func(r Reader) error { actor.Makers, err = scheduleBounds(r, s); return err }); err != nil {
		return false, err
	}
	for _, o := range found {
		if err := l.book(ctx, actor, s, o); err != nil {
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
	err = l.do(ctx, actor, func(u *unit) error {
		u.change.Schedules = append(u.change.Schedules, s)
		return nil
	})
	if errors.Is(err, ErrConflict) { // it was changed meanwhile: the next run sees that
		return false, nil
	}
	return more, err
}

func (l *Ledger) book(ctx context.Context, actor Actor, s Schedule, o recurrence.Occurrence) error {
	_, err := l.Reserve(ctx, actor, ReserveRequest{
		Pool: s.PoolID, GPUs: s.GPUs, Layout: s.Layout, Window: calendar.Interval{Start: o.Start, End: o.End}, Name: s.Name + " " + o.Date, Queue: true,
		id: ids.Derived(ids.Reservation, s.ID, o.Date), source: reservation.FromSchedule, madeBy: s.ID,
	})
	if errors.Is(err, ErrTaken) {
		return nil
	}
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	return l.do(ctx, actor, func(u *unit) error {
		u.event(Event{OrganizationID: s.OrganizationID, Type: "schedule.refused", Subject: s.ID, PoolID: s.PoolID,
			Reason: string(refused.Decision.Reasons[0].Code), Message: o.Date + ": " + clip(refused.Error(), 200)})
		return nil
	})
}
