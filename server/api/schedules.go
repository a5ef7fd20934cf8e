package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func scheduleEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, createSchedule, (*book[contract.ScheduleCreate]).body,
			func(s contract.Schedule) (string, int) { return "/v1/schedules/" + s.ID, s.Version }),
		serve(a, operation.Operation{ID: "listSchedules", Method: http.MethodGet, Path: "/schedules", Tag: "bookings",
			Policy: auth.Viewer, Summary: "List schedules"}, listSchedules),
		serve(a, operation.Operation{ID: "getSchedule", Method: http.MethodGet, Path: "/schedules/{id}",
			Tag: "bookings", Policy: auth.Viewer, Summary: "Read a schedule"}, getSchedule),
		serve(a, operation.Operation{ID: "deleteSchedule", Method: http.MethodDelete, Path: "/schedules/{id}",
			Tag: "bookings", Policy: auth.Member, Summary: "Delete a schedule and cancel what it booked"},
			deleteSchedule),
		serve(a, operation.Operation{ID: "listOccurrences", Method: http.MethodGet,
			Path: "/schedules/{id}/occurrences", Tag: "bookings", Policy: auth.Viewer,
			Summary: "List a schedule's next dates, and what became of each"}, listOccurrences),
		serveOnce(a, pauseSchedule(a, "pause", true), (*act).target, nil),
		serveOnce(a, pauseSchedule(a, "resume", false), (*act).target, nil),
	}
}

type scheduleChange[B, T any] = operation.Change[B, T, contract.Schedule]

var createSchedule = scheduleChange[contract.ScheduleCreate, ledger.Scheduled]{
	Operation: operation.Operation{ID: "createSchedule", Method: http.MethodPost, Path: "/schedules",
		Tag: "bookings", Status: http.StatusCreated, Policy: auth.Member,
		Summary: "Book reservations by a recurring rule"},
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.ScheduleCreate) (ledger.Scheduled, error) {
		return l.CreateSchedule(ctx, actor, decodeSchedule(b))
	},
	Encode: forAnybody(encodeScheduled),
}

// pauseSchedule stops a schedule, or lets it go on.
func pauseSchedule(a *API, name string, paused bool) scheduleChange[ByID, ledger.Schedule] {
	summary := "Resume a schedule: it books reservations again"
	if paused {
		summary = "Pause a schedule: it books no more reservations; what is booked stays"
	}
	return scheduleChange[ByID, ledger.Schedule]{
		Operation: operation.Operation{ID: name + "Schedule", Method: http.MethodPost, Path: "/schedules/{id}/" + name,
			Tag: "bookings", Policy: auth.Member, Summary: summary},
		Check: func(ctx context.Context, _ operation.Viewer, b *ByID) error {
			_, err := readSchedule(ctx, a, b.ID)
			return err
		},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b ByID) (ledger.Schedule, error) {
			return l.PauseSchedule(ctx, actor, b.ID, paused)
		},
		Encode: forAnybody(encodeSchedule),
	}
}

func decodeSchedule(b contract.ScheduleCreate) ledger.Schedule {
	return ledger.Schedule{
		PoolID: b.Pool, Name: b.Name, GPUs: b.GPUs, Layout: decodeLayout(b.Layout), StartLocal: b.StartLocal,
		Timezone: b.Timezone, RRule: b.RRule,
		ExDates: b.ExDates, Length: seconds(b.DurationSeconds), DSTPolicy: b.DSTPolicy,
	}
}

func listSchedules(ctx context.Context, a *API, in *struct {
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

func readSchedule(ctx context.Context, a *API, id string) (s ledger.Schedule, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		if s, err = r.Schedule(auth.From(ctx).Scope(), id); err == nil && !s.DeletedAt.IsZero() {
			err = ledger.ErrNotFound
		}
		return err
	})
	return s, err
}

func getSchedule(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Schedule], error) {
	s, err := readSchedule(ctx, a, in.ID)
	return &One[contract.Schedule]{ETag: formatETag(s.Version), Body: encodeSchedule(s)}, err
}

func deleteSchedule(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Schedule], error) {
	if _, err := readSchedule(ctx, a, in.ID); err != nil {
		return nil, err
	}
	s, cancelled, err := a.Ledger.DeleteSchedule(ctx, auth.From(ctx), in.ID)
	out := &One[contract.Schedule]{ETag: formatETag(s.Version), Body: encodeSchedule(s)}
	out.Body.Cancelled = &cancelled
	return out, err
}

func listOccurrences(ctx context.Context, a *API, in *struct {
	ByID
	From  time.Time `query:"from" doc:"Now, when left out."`
	To    time.Time `query:"to" doc:"As far ahead as there are dates, when left out."`
	Limit int       `query:"limit" minimum:"0" maximum:"500" doc:"Default: 100, or 5 when to is left out."`
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
