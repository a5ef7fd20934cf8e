package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func reservationEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, createReservation, (*book[contract.ReservationCreate]).body,
			func(r contract.Reservation) (string, int) { return "/v1/reservations/" + r.ID, r.Version }),
		serve(a, operation.Operation{ID: "listReservations", Method: http.MethodGet, Path: "/reservations",
			Tag: "bookings", Policy: auth.AnyKey,
			Summary: "List reservations, the newest first; an agent sees its own"}, listReservations),
		serve(a, operation.Operation{ID: "getReservation", Method: http.MethodGet, Path: "/reservations/{id}",
			Tag: "bookings", Policy: auth.AnyKey, Summary: "Read a reservation"}, getReservation),
		serveOnce(a, cancelReservation, func(in *act) contract.PlannedCancel {
			return contract.PlannedCancel{ReservationID: in.ID}
		}, nil),
		serveWaiting(a, claimReservation, func(in *claimInput) (contract.PlannedClaim, string) {
			return contract.PlannedClaim{ReservationID: in.ID, Claim: in.Body}, in.Prefer
		}),
	}
}

type reservationChange[B any] = operation.Change[B, reservation.Reservation, contract.Reservation]

var createReservation = reservationChange[contract.ReservationCreate]{
	Operation: operation.Operation{ID: "createReservation", Method: http.MethodPost, Path: "/reservations",
		Tag: "bookings", Status: http.StatusCreated, Policy: auth.Member, Queues: true,
		Summary: "Reserve GPUs for a window"},
	Plan: contract.PlanReserve,
	Check: func(_ context.Context, v operation.Viewer, b *contract.ReservationCreate) error {
		return checkReservation(v.Now, *b)
	},
	Lock: func(b contract.ReservationCreate) *ledger.LockHint { return poolLock(b.Pool) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.ReservationCreate) (reservation.Reservation, error) {
		return l.Reserve(ctx, actor, decodeReservation(b))
	},
	StatusOf: reservationStatus, Encode: forAnybody(encodeReservation),
}

// decodeReservation is what a body asks of the ledger.
func decodeReservation(b contract.ReservationCreate) ledger.ReserveRequest {
	return ledger.ReserveRequest{Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs,
		Layout: decodeLayout(b.Layout), Class: reservation.Class(b.Class), Name: b.Name, Queue: b.Queue,
		ForJobs:  reservation.ForJobs(b.ForJobs),
		Workload: capacity.Workload(b.Workload),
		Window:   calendar.Interval{Start: truncateTime(b.Start), End: truncateTime(b.End)},
		Range:    decodeTimeRange(b.TimeRange)}
}

// checkReservation refuses what is too far ahead.
func checkReservation(now time.Time, b contract.ReservationCreate) error {
	return cmp.Or(notTooFar(now, "start", b.Start),
		notTooFar(now, "start_time_not_earlier_than", b.StartTimeNotEarlierThan))
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

func notTooFar(now time.Time, field string, t time.Time) error {
	if t.After(now.Add(furthest)) {
		return problem.Invalid(field, "must be at most 366 days ahead", "")
	}
	return nil
}

func listReservations(ctx context.Context, a *API, in *struct {
	Page
	BookingFilter
	State    []string `query:"state" enum:"booked,waitlisted,warming,ready,claimed,cancelled,expired,failed"`
	MadeBy   string   `query:"made_by" maxLength:"64" doc:"Id or name of the key or schedule."`
	Schedule string   `query:"schedule" maxLength:"64"`
},
) (out *ListOut[contract.Reservation], err error) {
	actor := auth.From(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := bookingFilter(ctx, a, r, in.BookingFilter, in.State, in.MadeBy, "made_by")
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
		waits := newWaitEncoder(a, r)
		out, err = readPage(in.Page, "rsv", func(p ledger.Page) ([]reservation.Reservation, error) {
			return r.Reservations(s, f, p)
		}, func(r reservation.Reservation) string { return r.ID }, waits.encodeReservation)
		return errors.Join(err, waits.err)
	})
	return out, err
}

func getReservation(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Reservation], error) {
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
		waits := newWaitEncoder(a, r)
		out.ETag, out.Body = formatETag(got.Version), waits.encodeReservation(got)
		return waits.err
	})
	return out, err
}

var cancelReservation = reservationChange[contract.PlannedCancel]{
	Operation: operation.Operation{ID: "cancelReservation", Method: http.MethodDelete, Path: "/reservations/{id}",
		Tag: "bookings", Policy: auth.AgentOwn, Summary: "Cancel a reservation"},
	Plan: contract.PlanCancel,
	Lock: func(b contract.PlannedCancel) *ledger.LockHint { return &ledger.LockHint{Reservation: b.ReservationID} },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.PlannedCancel) (reservation.Reservation, error) {
		return l.CancelReservation(ctx, actor, b.ReservationID)
	},
	Encode: forAnybody(encodeReservation),
}

type claimInput struct {
	ByID
	KeyRequired
	DryRun
	Prefer string `header:"Prefer" maxLength:"64" doc:"As in createAllocation."`
	Body   contract.Claim
}

var claimReservation = allocationChange[contract.PlannedClaim]{
	Operation: operation.Operation{ID: "claimReservation", Method: http.MethodPost,
		Path: "/reservations/{id}/claim", Tag: "bookings", Status: http.StatusCreated, Policy: auth.Member,
		Queues: true, Waits: true, Summary: "Turn a reservation into an allocation"},
	Plan: contract.PlanClaim,
	Lock: func(b contract.PlannedClaim) *ledger.LockHint { return &ledger.LockHint{Reservation: b.ReservationID} },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.PlannedClaim) (allocation.Allocation, error) {
		return l.Claim(ctx, actor, b.ReservationID, seconds(b.LeaseSeconds), b.Name)
	},
	StatusOf: allocationStatus, Encode: forAnybody(encodeAllocation),
}

func encodeReservation(r reservation.Reservation) contract.Reservation {
	return contract.Reservation{
		ID: r.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name, Class: string(r.Class),
		Workload: string(r.Workload), Origin: string(r.Origin),
		MadeBy: r.MadeBy, State: string(r.State()), Degraded: r.Degraded, Reason: r.Reason, ReasonCode: r.ReasonCode,
		ForJobs: string(r.ForJobs), JobID: r.JobID, PartOf: r.PartOf,
		Probability: r.Probability, GPUs: r.Shape.GPUs(), Nodes: r.Shape.Nodes, GPUsPerNode: r.Shape.PerNode,
		Start: r.Window.Start.UTC(), End: r.Window.End.UTC(), Cost: formatMoney(r.Cost), CreatedAt: r.CreatedAt.UTC(),
		WarmedAt: r.WarmedAt.UTC(), ReadyAt: r.ReadyAt.UTC(), EndedAt: r.EndedAt.UTC(), Version: r.Version,
	}
}
