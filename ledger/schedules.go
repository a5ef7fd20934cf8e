package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// Spec is the schedule's rule as it was written.
func (s Schedule) Spec() recurrence.Spec {
	return recurrence.Spec{
		StartLocal: s.StartLocal, Timezone: s.Timezone, RRule: s.RRule, ExDates: s.ExDates, Length: s.Length,
		Policy: recurrence.Policy(s.DSTPolicy),
	}
}

// Scheduled is a new schedule and what its coming dates got.
type Scheduled struct {
	Schedule
	Dates   []ScheduleDate
	Remarks []string // for people: what may not have been meant
}

// CreateSchedule stores a schedule and books its coming dates as far ahead as
// they are booked now; the rest follows as time goes on. What no date could ever
// get is refused, as the single request would be: *RefusedError. A name that another
// schedule of the organization goes by is *TakenError.
func (l *Ledger) CreateSchedule(ctx context.Context, actor Actor, s Schedule) (Scheduled, error) {
	out := Scheduled{Schedule: s}
	rule, err := checkSchedule(s)
	if err == nil {
		s.GPUs, err = layOut(s.GPUs, s.Layout)
	}
	if err != nil {
		return out, err
	}
	err = l.inOwnTx(ctx, actor, func(u *groupTx) error {
		var err error
		out, err = u.createSchedule(s, rule)
		return err
	})
	out.Version = 1
	return out, err
}

func (u *groupTx) createSchedule(s Schedule, rule recurrence.Rule) (out Scheduled, err error) {
	if s.OrganizationID, err = u.actor.bookingOrganization(); err != nil {
		return out, err
	}
	if err := u.checkFree("name", s.Name); err != nil {
		return out, err
	}
	s.ID, s.MadeBy, s.CreatedAt, s.Version = u.ids.New(ids.Schedule), u.actor.KeyID, u.now(), 0
	who, err := scheduleActor(u.tx, s)
	if err != nil {
		return out, err
	}
	h, err := u.readHoldingOf(s.OrganizationID, who.askerFor())
	if err != nil {
		return out, err
	}
	h.countToo(s.ID)
	pools, err := u.lockCandidates(poolNeeds{pool: s.PoolID}) // under its lock: one that is being deleted must not get another schedule
	if err != nil {
		return out, err
	}
	p := pools[0]
	s.PoolID = p.Pool.ID
	if err := u.checkEverServed(p, h, s, rule); err != nil {
		return out, err
	}
	if err := u.freeScheduleName(s.OrganizationID, s.Name); err != nil {
		return out, err
	}
	u.addEvent(Event{OrganizationID: s.OrganizationID, Type: "schedule.created", Subject: s.ID, PoolID: s.PoolID,
		Message: fmt.Sprintf("%s, %s %s", phrase.Count(s.GPUs, "GPU"), s.RRule, s.Timezone)})
	err = u.runVerb(who, func(u *groupTx) error {
		out.Dates, err = u.bookFirst(p, h, &s, rule)
		return err
	})
	out.Schedule, out.Remarks = s, rule.Remarks(u.now())
	u.change.Schedules = append(u.change.Schedules, s)
	u.addKeyedTask(schedulesKey, TaskSchedules, "all")
	u.wake = append(u.wake, schedulesKey)
	return out, err
}

// exampleAdvice is advice to write a value like another; empty when there is none.
func exampleAdvice(value string) string {
	if value == "" {
		return ""
	}
	return "write it as in " + value
}

func checkSchedule(s Schedule) (recurrence.Rule, error) {
	if err := checkName("name", s.Name); err != nil {
		return recurrence.Rule{}, err
	}
	rule, err := recurrence.Parse(s.Spec())
	if err == nil {
		err = s.Spec().CheckSkipped()
	}
	if re, ok := errors.AsType[*recurrence.Error](err); ok {
		err = &InvalidError{Field: re.Field, Rule: re.Rule, Fix: exampleAdvice(re.Fix)}
	}
	return rule, err
}

// readSchedule reads a schedule that the actor may see and that is not deleted.
func (u *groupTx) readSchedule(id string) (Schedule, error) {
	s, err := u.tx.Schedule(u.actor.Scope(), id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ErrNotFound
	}
	return s, err
}

// PauseSchedule stops or resumes a schedule. What it has booked already stays.
func (l *Ledger) PauseSchedule(ctx context.Context, actor Actor, id string, paused bool) (Schedule, error) {
	var s Schedule
	err := l.inOwnTx(ctx, actor, func(u *groupTx) error {
		var err error
		if s, err = u.readSchedule(id); err != nil {
			return err
		}
		s.Paused = paused
		u.change.Schedules = append(u.change.Schedules, s)
		u.wake = append(u.wake, schedulesKey)
		what := map[bool]string{true: "schedule.paused", false: "schedule.resumed"}[paused]
		u.addEvent(Event{OrganizationID: s.OrganizationID, Type: what, Subject: s.ID, PoolID: s.PoolID, Message: s.Name})
		return nil
	})
	s.Version++
	return s, err
}

// DeleteSchedule ends a schedule and cancels what it booked and nobody claimed. It
// returns the schedule, and how many bookings those were.
func (l *Ledger) DeleteSchedule(ctx context.Context, actor Actor,
	id string) (ended Schedule, cancelled int, err error) {
	err = l.inOwnTx(ctx, actor, func(u *groupTx) error {
		cancelled = 0
		s, err := u.readSchedule(id)
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
		for r := range p.reservations.allRows() {
			if r.MadeBy != s.ID || !r.Live() {
				continue
			}
			if _, err := u.stepReservation(p, r, reservation.Cancel, "schedule_deleted",
				"its schedule was deleted"); err != nil {
				return err
			}
			u.markIdle(p, r.Slots)
			cancelled++
		}
		s.DeletedAt = u.now()
		u.change.Schedules = append(u.change.Schedules, s)
		u.wakePlan(p.Pool.ID)
		u.addEvent(Event{OrganizationID: s.OrganizationID, Type: "schedule.deleted", Subject: s.ID, PoolID: s.PoolID,
			Message: s.Name})
		ended = s
		return nil
	})
	ended.Version++
	return ended, cancelled, err
}

// freeScheduleName refuses a name that another schedule of the organization goes
// by: *TakenError. One that has no dates left gives its name up. The organization's
// lock, which the caller holds, keeps two from taking one name at once.
func (u *groupTx) freeScheduleName(organizationID, name string) error {
	found, err := u.tx.FindNamed(Scope{OrganizationID: organizationID}, NounSchedule, name)
	if err != nil {
		return fmt.Errorf("looking for schedules of that name: %w", err)
	}
	for _, one := range found {
		other, err := u.tx.Schedule(Scope{OrganizationID: organizationID}, one.ID)
		if err != nil {
			return fmt.Errorf("reading the schedule of that name: %w", err)
		}
		if !other.isOver(u.now()) {
			return &TakenError{Noun: NounSchedule, ID: other.ID, Name: name}
		}
		other.DeletedAt = u.now()
		u.change.Schedules = append(u.change.Schedules, other)
		u.addEvent(Event{OrganizationID: organizationID, Type: "schedule.deleted", Subject: other.ID, PoolID: other.PoolID,
			Reason:  "no_dates_left",
			Message: name + " had no dates left, and another schedule takes its name"})
	}
	return nil
}

// endless is further ahead than any schedule is asked about.
const endless = 100 * 366 * 24 * time.Hour

// isOver reports whether a schedule has no date that is still to come or going on. A
// rule that no longer parses is not known to be over.
func (s Schedule) isOver(now time.Time) bool {
	rule, err := recurrence.Parse(s.Spec())
	return err == nil && len(rule.Between(now.Add(-s.Length), now.Add(endless), 1)) == 0
}
