package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
	"github.com/forewarm/forewarm/ledger/recurrence"
)

// CreateSchedule stores a schedule and books its coming dates as far ahead as
// they are booked now; the rest follows as time goes on. What no date could ever
// get is refused, as the single request would be: *RefusedError. A name that another
// schedule of the organization goes by is *TakenError.
func (l Booking) CreateSchedule(ctx context.Context, actor ledger.Actor, s ledger.Schedule) (ledger.Scheduled, error) {
	out := ledger.Scheduled{Schedule: s}
	rule, err := checkSchedule(s)
	if err == nil {
		s.GPUs, err = ledger.LayOut(s.GPUs, s.Layout)
	}
	if err != nil {
		return out, err
	}
	err = l.InGroup(ctx, actor, &ledger.LockHint{Pool: s.PoolID}, func(tx *txn.Tx) error {
		var err error
		out, err = createSchedule(tx, s, rule)
		return err
	})
	out.Version = 1
	return out, err
}

func createSchedule(tx *txn.Tx, s ledger.Schedule, rule recurrence.Rule) (out ledger.Scheduled, err error) {
	if s.OrganizationID, err = tx.Actor.BookingOrganization(); err != nil {
		return out, err
	}
	if err := tenancy.CheckFree(tx, "name", s.Name); err != nil {
		return out, err
	}
	s.ID, s.MadeBy, s.CreatedAt, s.Version = tx.IDs.New(ids.Schedule), tx.Actor.KeyID, tx.Now(), 0
	who, err := ScheduleActor(tx.Port, s)
	if err != nil {
		return out, err
	}
	h, err := readHoldingOf(tx, s.OrganizationID, who.AskerFor())
	if err != nil {
		return out, err
	}
	h.countToo(s.ID)
	pools, err := lockCandidates(tx,
		ledger.PoolNeeds{Pool: s.PoolID}) // under its lock: one that is being deleted must not get another schedule
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
	tx.AddEvent(ledger.Event{OrganizationID: s.OrganizationID, Type: "schedule.created", Subject: s.ID,
		PoolID:  s.PoolID,
		Message: fmt.Sprintf("%s, %s %s", phrase.Count(s.GPUs, "GPU"), s.RRule, s.Timezone)})
	err = tx.RunVerb(who, func(tx *txn.Tx) error {
		out.Dates, err = bookFirst(tx, p, h, &s, rule)
		return err
	})
	out.Schedule, out.Remarks = s, rule.Remarks(tx.Now())
	tx.Change.Schedules = append(tx.Change.Schedules, s)
	tx.AddKeyedTask(txn.SchedulesKey, ledger.TaskSchedules, "all")
	tx.Wake = append(tx.Wake, ledger.Wakeup{Key: txn.SchedulesKey, At: tx.Now()})
	return out, err
}

// exampleAdvice is advice to write a value like another; empty when there is none.
func exampleAdvice(value string) string {
	if value == "" {
		return ""
	}
	return "write it as in " + value
}

func checkSchedule(s ledger.Schedule) (recurrence.Rule, error) {
	if err := tenancy.CheckName("name", s.Name); err != nil {
		return recurrence.Rule{}, err
	}
	rule, err := recurrence.Parse(s.Spec())
	if err == nil {
		err = s.Spec().CheckSkipped()
	}
	if re, ok := errors.AsType[*recurrence.Error](err); ok {
		err = &ledger.InvalidError{Field: re.Field, Rule: re.Rule, Fix: exampleAdvice(re.Fix)}
	}
	return rule, err
}

// readSchedule reads a schedule that the actor may see and that is not deleted.
func readSchedule(tx *txn.Tx, id string) (ledger.Schedule, error) {
	s, err := tx.Port.Schedule(tx.Actor.Scope(), id)
	if err == nil && !s.DeletedAt.IsZero() {
		err = ledger.ErrNotFound
	}
	return s, err
}

// PauseSchedule stops or resumes a schedule. What it has booked already stays.
func (l Booking) PauseSchedule(ctx context.Context, actor ledger.Actor, id string, paused bool) (
	ledger.Schedule, error) {
	var s ledger.Schedule
	err := l.InGroup(ctx, actor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		var err error
		if s, err = readSchedule(tx, id); err != nil {
			return err
		}
		s.Paused = paused
		tx.Change.Schedules = append(tx.Change.Schedules, s)
		tx.Wake = append(tx.Wake, ledger.Wakeup{Key: txn.SchedulesKey, At: tx.Now()})
		what := map[bool]string{true: "schedule.paused", false: "schedule.resumed"}[paused]
		tx.AddEvent(ledger.Event{OrganizationID: s.OrganizationID, Type: what, Subject: s.ID, PoolID: s.PoolID,
			Message: s.Name})
		return nil
	})
	s.Version++
	return s, err
}

// DeleteSchedule ends a schedule and cancels what it booked and nobody claimed. It
// returns the schedule, and how many bookings those were.
func (l Booking) DeleteSchedule(ctx context.Context, actor ledger.Actor,
	id string) (ended ledger.Schedule, cancelled int, err error) {
	err = l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		cancelled = 0
		s, err := readSchedule(tx, id)
		if err != nil {
			return err
		}
		if _, _, err := tenancy.LockSharers(tx, s.OrganizationID); err != nil {
			return fmt.Errorf("locking organization: %w", err)
		}
		p, err := tx.LockPool(s.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		for r := range p.Reservations.All() {
			if r.MadeBy != s.ID || !r.Live() {
				continue
			}
			if _, err := tx.StepReservation(p, r, reservation.Cancel, "schedule_deleted",
				"its schedule was deleted"); err != nil {
				return err
			}
			MarkIdle(tx, p, r.Slots)
			cancelled++
		}
		s.DeletedAt = tx.Now()
		tx.Change.Schedules = append(tx.Change.Schedules, s)
		tx.WakePlan(p.Pool.ID)
		tx.AddEvent(ledger.Event{OrganizationID: s.OrganizationID, Type: "schedule.deleted", Subject: s.ID,
			PoolID:  s.PoolID,
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
func freeScheduleName(tx *txn.Tx, organizationID, name string) error {
	found, err := tx.Port.FindNamed(ledger.Scope{OrganizationID: organizationID}, ledger.NounSchedule, name)
	if err != nil {
		return fmt.Errorf("looking for schedules of that name: %w", err)
	}
	for _, one := range found {
		other, err := tx.Port.Schedule(ledger.Scope{OrganizationID: organizationID}, one.ID)
		if err != nil {
			return fmt.Errorf("reading the schedule of that name: %w", err)
		}
		if !other.IsOver(tx.Now()) {
			return &ledger.TakenError{Noun: ledger.NounSchedule, ID: other.ID, Name: name}
		}
		other.DeletedAt = tx.Now()
		tx.Change.Schedules = append(tx.Change.Schedules, other)
		tx.AddEvent(ledger.Event{OrganizationID: organizationID, Type: "schedule.deleted", Subject: other.ID,
			PoolID:  other.PoolID,
			Reason:  "no_dates_left",
			Message: name + " had no dates left, and another schedule takes its name"})
	}
	return nil
}
