package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) schedules() {
	handle(a, operation{http.MethodPost, "/schedules", "createSchedule", "bookings", "Make reservations again and again", 201}, a.createSchedule)
	handle(a, operation{http.MethodGet, "/schedules", "listSchedules", "bookings", "List schedules", 0}, a.listSchedules)
	handle(a, operation{http.MethodGet, "/schedules/{id}", "getSchedule", "bookings", "Read a schedule", 0}, a.getSchedule)
	handle(a, operation{http.MethodDelete, "/schedules/{id}", "deleteSchedule", "bookings", "End a schedule and give back what it booked", 204}, a.deleteSchedule)
	handle(a, operation{http.MethodGet, "/schedules/{id}/occurrences", "listOccurrences", "bookings", "The next dates of a schedule", 0}, a.occurrences)
	for name, paused := range map[string]bool{"pause": true, "resume": false} {
		handle(a, operation{http.MethodPost, "/schedules/{id}/" + name, name + "Schedule", "bookings", "Stop or go on; what is booked stays", 0},
			func(ctx context.Context, in *struct {
				ByID
				Idempotency
			},
			) (*Made[contract.Schedule], error) {
				if _, err := a.schedule(ctx, in.ID); err != nil {
					return nil, err
				}
				return once(ctx, a, "POST /v1/schedules/{id}/"+name, in.Idempotency, in.ID, func(ctx context.Context) (int, contract.Schedule, error) {
					s, err := a.Ledger.PauseSchedule(ctx, auth.From(ctx), in.ID, paused)
					return http.StatusOK, schedule(s), err
				})
			})
	}
}

func (a *API) createSchedule(ctx context.Context, in *struct {
	KeyRequired
	Body contract.ScheduleCreate
},
) (*Made[contract.Schedule], error) {
	if err := in.require(); err != nil {
		return nil, err
	}
	b := in.Body
	out, err := once(ctx, a, "POST /v1/schedules", in.Idempotency, b, func(ctx context.Context) (int, contract.Schedule, error) {
		s, err := a.Ledger.CreateSchedule(ctx, auth.From(ctx), ledger.Schedule{
			PoolID: b.Pool, Name: b.Name, GPUs: b.GPUs, Layout: layout(b.Layout), StartLocal: b.StartLocal, Timezone: b.Timezone, RRule: b.RRule,
			ExDates: b.ExDates, Length: seconds(b.DurationSeconds), DSTPolicy: b.DSTPolicy,
		})
		return http.StatusCreated, schedule(s), err
	})
	if err != nil {
		return nil, err
	}
	out.Location, out.ETag = "/v1/schedules/"+out.Body.ID, etag(out.Body.Version)
	return out, nil
}

func (a *API) listSchedules(ctx context.Context, in *struct {
	Page
	OfOrganization
},
) (out *ListOut[contract.Schedule], err error) {
	err = a.read(ctx, func(r ledger.Reader) error {
		s, err := a.scope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		out, err = paged(in.Page, "sch", func(p ledger.Page) ([]ledger.Schedule, error) {
			return r.Schedules(s, p)
		}, func(s ledger.Schedule) string { return s.ID }, schedule)
		return err
	})
	return out, err
}

func (a *API) schedule(ctx context.Context, id string) (s ledger.Schedule, err error) {
	err = a.read(ctx, func(r ledger.Reader) error {
		if s, err = r.Schedule(auth.From(ctx).Scope(), id); err == nil && !s.DeletedAt.IsZero() {
			err = ledger.ErrNotFound
		}
		return err
	})
	return s, err
}

func (a *API) getSchedule(ctx context.Context, in *struct{ ByID }) (*One[contract.Schedule], error) {
	s, err := a.schedule(ctx, in.ID)
	return &One[contract.Schedule]{ETag: etag(s.Version), Body: schedule(s)}, err
}

func (a *API) deleteSchedule(ctx context.Context, in *struct{ ByID }) (*struct{}, error) {
	if _, err := a.schedule(ctx, in.ID); err != nil {
		return nil, err
	}
	return nil, a.Ledger.DeleteSchedule(ctx, auth.From(ctx), in.ID)
}

// preview is how far ahead occurrences are shown unless asked otherwise.
const preview = 14 * 24 * time.Hour

func (a *API) occurrences(ctx context.Context, in *struct {
	ByID
	From  time.Time `query:"from" doc:"Now, when left out."`
	To    time.Time `query:"to" doc:"Two weeks from now, when left out."`
	Limit int       `query:"limit" minimum:"1" maximum:"500" default:"100"`
},
) (*ListOut[contract.Occurrence], error) {
	now := a.Clock.Now()
	from, to, err := period(in.From, in.To, now, now.Add(preview))
	if err != nil {
		return nil, err
	}
	s, err := a.schedule(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	dates, err := s.Spec().Between(from, to, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &ListOut[contract.Occurrence]{Body: contract.List[contract.Occurrence]{Items: []contract.Occurrence{}}}
	for _, o := range dates {
		out.Body.Items = append(out.Body.Items, contract.Occurrence{Start: o.Start.UTC(), End: o.End.UTC(), LocalStart: o.LocalStart.Format(time.RFC3339)})
	}
	return out, nil
}

func schedule(s ledger.Schedule) contract.Schedule {
	spread := ""
	if s.Layout.Even {
		spread = "even"
	}
	return contract.Schedule{
		Nodes: s.Layout.Nodes, GPUsPerNode: s.Layout.PerNode, Spread: spread,
		ID: s.ID, OrganizationID: s.OrganizationID, PoolID: s.PoolID, Name: s.Name, GPUs: s.GPUs, StartLocal: s.StartLocal,
		Timezone: s.Timezone, RRule: s.RRule, ExDates: append([]string{}, s.ExDates...), DurationSeconds: int64(s.Length / time.Second),
		DSTPolicy: s.DSTPolicy, Paused: s.Paused, MadeBy: s.MadeBy, CreatedAt: s.CreatedAt.UTC(), DoneUntil: s.DoneUntil.UTC(), Version: s.Version,
	}
}
