package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) registerReservations() {
	registerOperation(a, operation{http.MethodPost, "/reservations", "createReservation", "bookings",
		"Get a promise of GPUs over a window", 201}, a.createReservation)
	registerOperation(a, operation{http.MethodGet, "/reservations", "listReservations", "bookings",
		"List reservations, the newest first; an agent sees its own", 0}, a.listReservations)
	registerOperation(a, operation{http.MethodGet, "/reservations/{id}", "getReservation", "bookings", "Read a reservation", 0},
		a.getReservation)
	registerOperation(a, operation{http.MethodDelete, "/reservations/{id}", "cancelReservation", "bookings", "Give a promise back",
		0}, a.cancelReservation)
	registerOperation(a, operation{http.MethodPost, "/reservations/{id}/claim", "claimReservation", "bookings",
		"Turn a reservation into an allocation", 201}, a.claimReservation)
}

func (a *API) createReservation(ctx context.Context, in *struct {
	KeyRequired
	DryRun bool `query:"dry_run" doc:"Answer what would happen and change nothing."`
	Body   contract.ReservationCreate
},
) (*Created[contract.Reservation], error) {
	actor, b := auth.From(ctx), in.Body
	if in.DryRun {
		return dryRun[contract.Reservation](ctx, a, actor, b, reserveOperation)
	}
	req, err := a.reserveRequest(b)
	if err != nil {
		return nil, err
	}
	if err := in.requireKey(); err != nil {
		return nil, err
	}
	out, err := runOnceLocking(ctx, a, ledger.Once{Route: "POST /v1/reservations", Key: in.Key, LockHint: poolLock(b.Pool)}, b,
		func(ctx context.Context, a *API) (int, contract.Reservation, error) {
			got, err := a.Ledger.Reserve(ctx, actor, req)
			return reservationStatus(got), encodeReservation(got), err
		})
	if err != nil {
		return nil, err
	}
	out.Location, out.ETag = "/v1/reservations/"+out.Body.ID, formatETag(out.Body.Version)
	return out, nil
}

// reserveRequest is what a body asks of the ledger.
func (a *API) reserveRequest(b contract.ReservationCreate) (ledger.ReserveRequest, error) {
	return ledger.ReserveRequest{Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs,
			Layout: decodeLayout(b.Layout),
			Class:  reservation.Class(b.Class), Name: b.Name, Queue: b.Queue,
			Workload: capacity.Workload(b.Workload), Window: calendar.Interval{Start: truncateTime(b.Start), End: truncateTime(b.End)},
			Range: decodeTimeRange(b.TimeRange)},
		cmp.Or(a.notTooFar("start", b.Start), a.notTooFar("start_time_not_earlier_than", b.StartTimeNotEarlierThan))
}

// poolLock says which pool a request will lock, if it names one.
func poolLock(idOrName string) *ledger.LockHint {
	if idOrName == "" {
		return nil
	}
	return &ledger.LockHint{Pool: idOrName}
}

// reservationStatus is the status of a new reservation: 202 while it has no place.
func reservationStatus(got reservation.Reservation) int {
	if got.Placed() {
		return http.StatusCreated
	}
	return http.StatusAccepted
}

func (a *API) notTooFar(field string, t time.Time) error {
	if t.After(a.Clock.Now().Add(furthest)) {
		return problem.Invalid(field, "must be at most 366 days ahead", "")
	}
	return nil
}

func (a *API) listReservations(ctx context.Context, in *struct {
	Page
	BookingFilter
	State    []string `query:"state" enum:"booked,waitlisted,warming,ready,claimed,cancelled,expired,failed"`
	MadeBy   string   `query:"made_by" maxLength:"64" doc:"Id or name of the key or schedule."`
	Schedule string   `query:"schedule" maxLength:"64" doc:"Id or name of the schedule whose dates they are; instead of made_by."`
},
) (out *ListOut[contract.Reservation], err error) {
	actor := auth.From(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := a.bookingFilter(ctx, r, in.BookingFilter, in.State, in.MadeBy, "made_by")
		if err != nil {
			return err
		}
		if in.Schedule != "" {
			if in.MadeBy != "" {
				return problem.Parameter("schedule", "must not be given with made_by")
			}
			if f.MadeBy, err = a.resolveParameter(ctx, r, s, ledger.NounSchedule, "schedule", in.Schedule); err != nil {
				return err
			}
		}
		if actor.Kind == ledger.AgentKey {
			f.MadeBy = actor.KeyID
		}
		waits := a.newWaitEncoder(r)
		out, err = readPage(in.Page, "rsv", func(p ledger.Page) ([]reservation.Reservation, error) {
			return r.Reservations(s, f, p)
		}, func(r reservation.Reservation) string { return r.ID }, waits.encodeReservation)
		return errors.Join(err, waits.err)
	})
	return out, err
}

func (a *API) getReservation(ctx context.Context, in *struct{ ByID }) (*One[contract.Reservation], error) {
	actor := auth.From(ctx)
	out := &One[contract.Reservation]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err := r.Reservation(actor.Scope(), in.ID)
		if err != nil {
			return err
		}
		if actor.Kind == ledger.AgentKey && got.MadeBy != actor.KeyID {
			return ledger.ErrNotFound
		}
		waits := a.newWaitEncoder(r)
		out.ETag, out.Body = formatETag(got.Version), waits.encodeReservation(got)
		return waits.err
	})
	return out, err
}

func (a *API) cancelReservation(ctx context.Context, in *struct {
	ByID
	Idempotency
},
) (*Created[contract.Reservation], error) {
	return runOnceLocking(ctx, a, ledger.Once{Route: "DELETE /v1/reservations/{id}", Key: in.Key,
		LockHint: &ledger.LockHint{Reservation: in.ID}}, in.ID, func(ctx context.Context, a *API) (int, contract.Reservation, error) {
		got, err := a.Ledger.CancelReservation(ctx, auth.From(ctx), in.ID)
		return http.StatusOK, encodeReservation(got), err
	})
}

func (a *API) claimReservation(ctx context.Context, in *struct {
	ByID
	KeyRequired
	DryRun bool   `query:"dry_run" doc:"Answer what would happen and change nothing."`
	Prefer string `header:"Prefer" maxLength:"64" doc:"As of createAllocation."`
	Body   contract.Claim
},
) (*allocationOut, error) {
	if in.DryRun {
		return dryRunOut(dryRun[contract.Allocation](ctx, a, auth.From(ctx),
			contract.PlannedClaim{ReservationID: in.ID, Claim: in.Body}, claimOperation))
	}
	if err := in.requireKey(); err != nil {
		return nil, err
	}
	hashed := []any{in.ID, in.Body}
	out, err := runOnceLocking(ctx, a, ledger.Once{Route: "POST /v1/reservations/{id}/claim", Key: in.Key,
		LockHint: &ledger.LockHint{Reservation: in.ID}}, hashed, func(ctx context.Context, a *API) (int, contract.Allocation, error) {
		got, err := a.Ledger.Claim(ctx, auth.From(ctx), in.ID, seconds(in.Body.LeaseSeconds), in.Body.Name)
		return allocationStatus(got), encodeAllocation(got), err
	})
	if err != nil {
		return nil, err
	}
	return a.awaitAllocation(ctx, out, in.Prefer)
}

func encodeReservation(r reservation.Reservation) contract.Reservation {
	return contract.Reservation{
		ID: r.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name, Class: string(r.Class),
		Workload: string(r.Workload), Origin: string(r.Origin),
		MadeBy: r.MadeBy, State: string(r.State()), Degraded: r.Degraded, Reason: r.Reason, ReasonCode: r.ReasonCode,
		Probability: r.Probability, GPUs: r.Shape.GPUs(), Nodes: r.Shape.Nodes, GPUsPerNode: r.Shape.PerNode,
		Start: r.Window.Start.UTC(), End: r.Window.End.UTC(), Cost: formatMoney(r.Cost), CreatedAt: r.CreatedAt.UTC(),
		WarmedAt: r.WarmedAt.UTC(), ReadyAt: r.ReadyAt.UTC(), EndedAt: r.EndedAt.UTC(), Version: r.Version,
	}
}
