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
func (l Booking) CreateSchedule(ctx context.Context, actor Actor, s Schedule) (Scheduled, error) {
	out := Scheduled{Schedule: s}
	rule, err := checkSchedule(s)
	if err == nil {
		s.GPUs, err = layOut(s.GPUs, s.Layout)
	}
	if err != nil {
		return out, err
	}
	err = l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		var err error
		out, err = createSchedule(tx, s, rule)
		return err
	})
	out.Version = 1
	return out, err
}

func createSchedule(tx *groupTx, s Schedule, rule recurrence.Rule) (out Scheduled, err error) {
	if s.OrganizationID, err = tx.actor.bookingOrganization(); err != nil {
		return out, err
	}
	if err := checkFree(tx, "name", s.Name); err != nil {
		return out, err
	}
	s.ID, s.MadeBy, s.CreatedAt, s.Version = tx.ids.New(ids.Schedule), tx.actor.KeyID, tx.now(), 0
	who, err := scheduleActor(tx.port, s)
	if err != nil {
		return out, err
	}
	h, err := readHoldingOf(tx, s.OrganizationID, who.askerFor())
	if err != nil {
		return out, err
	}
	h.countToo(s.ID)
	pools, err := lockCandidates(tx, poolNeeds{pool: s.PoolID}) // under its lock: one that is being deleted must not get another schedule
	if err != nil {
		return out, err
	}
	p := pools[0]
	s.PoolID = p.Pool.ID
	if err := checkEverServed(tx, p, h, s, rule); err != nil {
		return out, err
	}
	if err := freeScheduleName(tx, s.OrganizationID, s.Name); err != nil {
		return out, err
	}
	tx.addEvent(Event{OrganizationID: s.OrganizationID, Type: "schedule.created", Subject: s.ID, PoolID: s.PoolID,
		Message: fmt.Sprintf("%s, %s %s", phrase.Count(s.GPUs, "GPU"), s.RRule, s.Timezone)})
	err = tx.runVerb(who, func(tx *groupTx) error {
		out.Dates, err = bookFirst(tx, p, h, &s, rule)
		return err
	})
	out.Schedule, out.Remarks = s, rule.Remarks(tx.now())
	tx.change.Schedules = append(tx.change.Schedules, s)
	tx.addKeyedTask(schedulesKey, TaskSchedules, "all")
	tx.wake = append(tx.wake, schedulesKey)
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
func readSchedule(tx *groupTx, id string) (Schedule, error) {
	s, err := tx.port.Schedule(tx.actor.Scope(), id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ErrNotFound
	}
	return s, err
}

// PauseSchedule stops or resumes a schedule. What it has booked already stays.
func (l Booking) PauseSchedule(ctx context.Context, actor Actor, id string, paused bool) (Schedule, error) {
	var s Schedule
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		var err error
		if s, err = readSchedule(tx, id); err != nil {
			return err
		}
		s.Paused = paused
		tx.change.Schedules = append(tx.change.Schedules, s)
		tx.wake = append(tx.wake, schedulesKey)
		what := map[bool]string{true: "schedule.paused", false: "schedule.resumed"}[paused]
		tx.addEvent(Event{OrganizationID: s.OrganizationID, Type: what, Subject: s.ID, PoolID: s.PoolID, Message: s.Name})
		return nil
	})
	s.Version++
	return s, err
}

// DeleteSchedule ends a schedule and cancels what it booked and nobody claimed. It
// returns the schedule, and how many bookings those were.
func (l Booking) DeleteSchedule(ctx context.Context, actor Actor,
	id string) (ended Schedule, cancelled int, err error) {
	err = l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		cancelled = 0
		s, err := readSchedule(tx, id)
		if err != nil {
			return err
		}
		if _, _, err := lockSharers(tx, s.OrganizationID); err != nil {
			return fmt.Errorf("locking organization: %w", err)
		}
		p, err := tx.lockPool(s.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		for r := range p.reservations.allRows() {
			if r.MadeBy != s.ID || !r.Live() {
				continue
			}
			if _, err := tx.stepReservation(p, r, reservation.Cancel, "schedule_deleted",
				"its schedule was deleted"); err != nil {
				return err
			}
			markIdle(tx, p, r.Slots)
			cancelled++
		}
		s.DeletedAt = tx.now()
		tx.change.Schedules = append(tx.change.Schedules, s)
		tx.wakePlan(p.Pool.ID)
		tx.addEvent(Event{OrganizationID: s.OrganizationID, Type: "schedule.deleted", Subject: s.ID, PoolID: s.PoolID,
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
func freeScheduleName(tx *groupTx, organizationID, name string) error {
	found, err := tx.port.FindNamed(Scope{OrganizationID: organizationID}, NounSchedule, name)
	if err != nil {
		return fmt.Errorf("looking for schedules of that name: %w", err)
	}
	for _, one := range found {
		other, err := tx.port.Schedule(Scope{OrganizationID: organizationID}, one.ID)
		if err != nil {
			return fmt.Errorf("reading the schedule of that name: %w", err)
		}
		if !other.isOver(tx.now()) {
			return &TakenError{Noun: NounSchedule, ID: other.ID, Name: name}
		}
		other.DeletedAt = tx.now()
		tx.change.Schedules = append(tx.change.Schedules, other)
		tx.addEvent(Event{OrganizationID: organizationID, Type: "schedule.deleted", Subject: other.ID, PoolID: other.PoolID,
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
