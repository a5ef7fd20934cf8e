package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) registerSchedules() {
	registerOperation(a, operation{http.MethodPost, "/schedules", "createSchedule", "bookings",
		"Make reservations again and again", 201}, a.createSchedule)
	registerOperation(a, operation{http.MethodGet, "/schedules", "listSchedules", "bookings", "List schedules", 0},
		a.listSchedules)
	registerOperation(a, operation{http.MethodGet, "/schedules/{id}", "getSchedule", "bookings", "Read a schedule", 0},
		a.getSchedule)
	registerOperation(a, operation{http.MethodDelete, "/schedules/{id}", "deleteSchedule", "bookings",
		"End a schedule and give back what it booked", 0}, a.deleteSchedule)
	registerOperation(a, operation{http.MethodGet, "/schedules/{id}/occurrences", "listOccurrences", "bookings",
		"The next dates of a schedule, and what became of each", 0}, a.listOccurrences)
	for name, paused := range map[string]bool{"pause": true, "resume": false} {
		registerOperation(a, operation{http.MethodPost, "/schedules/{id}/" + name, name + "Schedule", "bookings",
			"Stop or go on; what is booked stays", 0},
			func(ctx context.Context, in *struct {
				ByID
				Idempotency
			},
			) (*Created[contract.Schedule], error) {
				if _, err := a.readSchedule(ctx, in.ID); err != nil {
					return nil, err
				}
				return runOnce(ctx, a, "POST /v1/schedules/{id}/"+name, in.Idempotency, in.ID,
					func(ctx context.Context, a *API) (int, contract.Schedule, error) {
						s, err := a.Ledger.PauseSchedule(ctx, auth.From(ctx), in.ID, paused)
						return http.StatusOK, encodeSchedule(s), err
					})
			})
	}
}

func (a *API) createSchedule(ctx context.Context, in *struct {
	KeyRequired
	DryRun bool `query:"dry_run" doc:"Answer what would happen and change nothing."`
	Body   contract.ScheduleCreate
},
) (*Created[contract.Schedule], error) {
	if in.DryRun {
		return dryRun[contract.Schedule](ctx, a, auth.From(ctx), in.Body, scheduleOperation)
	}
	if err := in.requireKey(); err != nil {
		return nil, err
	}
	out, err := runOnce(ctx, a, "POST /v1/schedules", in.Idempotency, in.Body,
		func(ctx context.Context, a *API) (int, contract.Schedule, error) {
			s, err := a.Ledger.CreateSchedule(ctx, auth.From(ctx), decodeSchedule(in.Body))
			return http.StatusCreated, encodeScheduled(s), err
		})
	if err != nil {
		return nil, err
	}
	out.Location, out.ETag = "/v1/schedules/"+out.Body.ID, formatETag(out.Body.Version)
	return out, nil
}

func decodeSchedule(b contract.ScheduleCreate) ledger.Schedule {
	return ledger.Schedule{
		PoolID: b.Pool, Name: b.Name, GPUs: b.GPUs, Layout: decodeLayout(b.Layout), StartLocal: b.StartLocal,
		Timezone: b.Timezone, RRule: b.RRule,
		ExDates: b.ExDates, Length: seconds(b.DurationSeconds), DSTPolicy: b.DSTPolicy,
	}
}

func scheduleOperation(_ *API, actor ledger.Actor, b contract.ScheduleCreate) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (ledger.Scheduled, error) {
		return l.CreateSchedule(ctx, actor, decodeSchedule(b))
	}, statusOK, encodeScheduled), nil
}

func (a *API) listSchedules(ctx context.Context, in *struct {
	Page
	OfOrganization
},
) (out *ListOut[contract.Schedule], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		out, err = readPage(in.Page, "sch", func(p ledger.Page) ([]ledger.Schedule, error) {
			return r.Schedules(s, p)
		}, func(s ledger.Schedule) string { return s.ID }, encodeSchedule)
		return err
	})
	return out, err
}

func (a *API) readSchedule(ctx context.Context, id string) (s ledger.Schedule, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		if s, err = r.Schedule(auth.From(ctx).Scope(), id); err == nil && !s.DeletedAt.IsZero() {
			err = ledger.ErrNotFound
		}
		return err
	})
	return s, err
}

func (a *API) getSchedule(ctx context.Context, in *struct{ ByID }) (*One[contract.Schedule], error) {
	s, err := a.readSchedule(ctx, in.ID)
	return &One[contract.Schedule]{ETag: formatETag(s.Version), Body: encodeSchedule(s)}, err
}

func (a *API) deleteSchedule(ctx context.Context, in *struct{ ByID }) (*One[contract.Schedule], error) {
	if _, err := a.readSchedule(ctx, in.ID); err != nil {
		return nil, err
	}
	s, cancelled, err := a.Ledger.DeleteSchedule(ctx, auth.From(ctx), in.ID)
	out := &One[contract.Schedule]{ETag: formatETag(s.Version), Body: encodeSchedule(s)}
	out.Body.Cancelled = &cancelled
	return out, err
}

func (a *API) listOccurrences(ctx context.Context, in *struct {
	ByID
	From  time.Time `query:"from" doc:"Now, when left out."`
	To    time.Time `query:"to" doc:"As far ahead as there are any, when left out."`
	Limit int       `query:"limit" minimum:"0" maximum:"500" doc:"When left out 100, or without to the next 5."`
},
) (*ListOut[contract.Occurrence], error) {
	if !in.To.IsZero() {
		from, to, err := parsePeriod(in.From, in.To, a.Clock.Now(), in.To)
		if err != nil {
			return nil, err
		}
		in.From, in.To, in.Limit = from, to, cmp.Or(in.Limit, 100)
	}
	dates, err := a.Ledger.Dates(ctx, auth.From(ctx), in.ID, truncateTime(in.From), in.To, in.Limit)
	if err != nil {
		return nil, err
	}
	return &ListOut[contract.Occurrence]{Body: contract.List[contract.Occurrence]{Items: encodeDates(dates)}}, nil
}

func encodeDates(dates []ledger.ScheduleDate) []contract.Occurrence {
	out := make([]contract.Occurrence, len(dates))
	for i, d := range dates {
		out[i] = contract.Occurrence{Start: d.Start.UTC(), End: d.End.UTC(),
			LocalStart: d.LocalStart.Format(time.RFC3339), State: d.State,
			ReservationID: d.ReservationID, Degraded: d.Degraded, Reason: d.Reason, Message: d.Message,
			AskedAt: d.AskedAt.UTC()}
		if d.ReservationID != "" {
			cost := formatMoney(d.Cost)
			out[i].Cost = &cost
		}
	}
	return out
}

func encodeScheduled(s ledger.Scheduled) contract.Schedule {
	out := encodeSchedule(s.Schedule)
	var booked money.MicroUSD
	for _, d := range s.Dates {
		booked += d.Cost
	}
	cost := formatMoney(booked)
	out.Next, out.Cost, out.Remarks = encodeDates(s.Dates), &cost, s.Remarks
	return out
}

func encodeSchedule(s ledger.Schedule) contract.Schedule {
	spread := ""
	if s.Layout.Even {
		spread = "even"
	}
	return contract.Schedule{
		Nodes: s.Layout.Nodes, GPUsPerNode: s.Layout.PerNode, Spread: spread,
		ID: s.ID, OrganizationID: s.OrganizationID, PoolID: s.PoolID, Name: s.Name, GPUs: s.GPUs,
		StartLocal: s.StartLocal,
		Timezone:   s.Timezone, RRule: s.RRule, ExDates: append([]string{}, s.ExDates...),
		DurationSeconds: int64(s.Length / time.Second),
		DSTPolicy:       s.DSTPolicy, Paused: s.Paused, MadeBy: s.MadeBy, CreatedAt: s.CreatedAt.UTC(),
		DoneUntil: s.DoneUntil.UTC(), Version: s.Version,
	}
}
