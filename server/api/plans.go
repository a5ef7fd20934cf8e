package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) plans() {
	a.kinds = a.planKinds()
	handle(a, operation{http.MethodPost, "/plans", "createPlan", "plans",
		"See what a request would do, before it does it", 201}, a.createPlan)
	handle(a, operation{http.MethodGet, "/plans/{id}", "getPlan", "plans", "Read a plan; an agent sees its own", 0},
		a.getPlan)
	handle(a, operation{http.MethodPost, "/plans/{id}/apply", "applyPlan", "plans",
		"Do exactly what a plan shows, or nothing", 0}, a.applyPlan)
}

// planKind is a verb that can be planned.
type planKind struct {
	route  string // whose policy holds for it
	schema *huma.Schema
	deed   func(a *API, actor ledger.Actor, request []byte) (ledger.Operation, error)
}

// kindOf describes a kind whose request is a T.
func kindOf[T any](a *API, route string, deed func(*API, ledger.Actor, T) (ledger.Operation, error)) planKind {
	return planKind{
		route: route, schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, ""),
		deed: func(a *API, actor ledger.Actor, request []byte) (ledger.Operation, error) {
			var body T
			if err := json.Unmarshal(request, &body); err != nil {
				return nil, problem.Invalid("request", "must be the body of the kind's own route", "")
			}
			return deed(a, actor, body)
		},
	}
}

func (a *API) planKinds() map[string]planKind {
	return map[string]planKind{
		contract.PlanReserve:   kindOf(a, "POST /v1/reservations", reserveDeed),
		contract.PlanAllocate:  kindOf(a, "POST /v1/allocations", allocateDeed),
		contract.PlanClaim:     kindOf(a, "POST /v1/reservations/:id/claim", claimDeed),
		contract.PlanRelease:   kindOf(a, "POST /v1/allocations/:id/release", releaseDeed),
		contract.PlanCancel:    kindOf(a, "DELETE /v1/reservations/:id", cancelDeed),
		contract.PlanQuota:     kindOf(a, "PUT /v1/organizations/:id/quota", quotaDeed),
		contract.PlanPool:      kindOf(a, "PATCH /v1/pools/:id", poolDeed),
		contract.PlanAgentPlan: kindOf(a, "PUT /v1/agent/plan", agentPlanDeed),
	}
}

// deed turns a plan's request into code, if the actor may use the verb's own
// route and the request would pass there.
func (a *API) deed(actor ledger.Actor, kind string, request []byte) (ledger.Operation, error) {
	k, ok := a.kinds[kind]
	if !ok {
		return nil, problem.Invalid("kind", "must be one of the kinds of plan", "")
	}
	if err := auth.Policies[k.route].Allow(actor); err != nil {
		return nil, err
	}
	if err := a.valid(k.schema, request); err != nil {
		return nil, err
	}
	return k.deed(a, actor, request)
}

// valid checks a request that lies inside a body by the rules of its own route.
func (a *API) valid(schema *huma.Schema, request []byte) error {
	var v any
	if err := json.Unmarshal(request, &v); err != nil {
		return problem.Invalid("request", "must be a JSON object", "")
	}
	path := huma.NewPathBuffer([]byte("body"), 0)
	path.Push("request")
	result := &huma.ValidateResult{}
	huma.Validate(a.huma.OpenAPI().Components.Schemas, schema, path, huma.ModeWriteToServer, v, result)
	if len(result.Errors) == 0 {
		return nil
	}
	return huma.NewError(http.StatusUnprocessableEntity, "The request of the plan is wrong.", result.Errors...)
}

// dryRun answers what a request would answer, and changes nothing. Ids in it are
// given to nothing.
func dryRun[T, B any](ctx context.Context, a *API, actor ledger.Actor, body B,
	of func(*API, ledger.Actor, B) (ledger.Operation, error)) (*Created[T], error) {
	deed, err := of(a, actor, body)
	if err != nil {
		return nil, err
	}
	_, answer, err := a.Ledger.DryRun(ctx, actor, deed)
	if err != nil {
		return nil, err
	}
	out := &Created[T]{Status: http.StatusOK}
	if err := json.Unmarshal(answer, &out.Body); err != nil {
		return nil, fmt.Errorf("decoding what a dry run answered: %w", err)
	}
	return out, nil
}

// createPlan takes an idempotency key and needs none: a plan changes nothing.
func (a *API) createPlan(ctx context.Context, in *struct {
	Idempotency
	Body contract.PlanCreate
},
) (*Created[contract.Plan], error) {
	actor := auth.From(ctx)
	deed, err := a.deed(actor, in.Body.Kind, in.Body.Request)
	if err != nil {
		return nil, err
	}
	p := ledger.Preview{Kind: in.Body.Kind, Request: in.Body.Request}
	p, err = a.Ledger.MakePlan(ctx, actor, p, deed,
		func(e ledger.Effect, answer []byte) ([]byte, error) { return shown(actor, e, answer) })
	if err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &Created[contract.Plan]{Status: http.StatusCreated, Location: "/v1/plans/" + p.ID, ETag: etag(p.Version),
		Body: body}, err
}

func (a *API) getPlan(ctx context.Context, in *struct{ ByID }) (*One[contract.Plan], error) {
	p, err := a.Ledger.PlanOf(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &One[contract.Plan]{ETag: etag(p.Version), Body: body}, err
}

// applyPlan needs no idempotency key: a plan is applied once, however often that
// is asked for.
func (a *API) applyPlan(ctx context.Context, in *struct {
	ByID
	Idempotency
},
) (*One[contract.Plan], error) {
	actor := auth.From(ctx)
	p, err := a.Ledger.PlanOf(ctx, actor, in.ID)
	if err != nil {
		return nil, err
	}
	deed, err := a.deed(actor, p.Kind, p.Request)
	if err != nil {
		return nil, err
	}
	if p, err = a.Ledger.ApplyPlan(ctx, actor, in.ID, deed); err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &One[contract.Plan]{ETag: etag(p.Version), Body: body}, err
}

// encodePlan adds to what was shown how far the plan is.
func (a *API) encodePlan(p ledger.Preview) (contract.Plan, error) {
	var out contract.Plan
	if err := json.Unmarshal(p.Effect, &out); err != nil {
		return out, fmt.Errorf("decoding plan %s: %w", p.ID, err)
	}
	out.ID, out.Kind, out.Request, out.State = p.ID, p.Kind, p.Request, "open"
	out.CreatedAt, out.ExpiresAt, out.AppliedAt = p.CreatedAt.UTC(), p.ExpiresAt.UTC(), p.AppliedAt.UTC()
	switch {
	case !p.AppliedAt.IsZero():
		out.State, out.Answer, out.AnswerStatus = "applied", p.Answer, p.Status
	case !a.Clock.Now().Before(p.ExpiresAt):
		out.State = "expired"
	}
	return out, nil
}

// deedOf calls one verb and encodes what it answers.
func deedOf[T, O any](verb func(context.Context, *ledger.Ledger) (T, error), status func(T) int,
	encode func(T) O) ledger.Operation {
	return func(ctx context.Context, l *ledger.Ledger) (int, []byte, error) {
		got, err := verb(ctx, l)
		if err != nil {
			return 0, nil, err
		}
		answer, err := json.Marshal(encode(got))
		return status(got), answer, err
	}
}

func ok[T any](T) int { return http.StatusOK }

func reserveDeed(a *API, actor ledger.Actor, b contract.ReservationCreate) (ledger.Operation, error) {
	req, err := a.reserveRequest(b)
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (reservation.Reservation, error) {
		return l.Reserve(ctx, actor, req)
	},
		promised, encodeReservation), err
}

func allocateDeed(_ *API, actor ledger.Actor, b contract.AllocationCreate) (ledger.Operation, error) {
	req := allocateRequest(b)
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Allocate(ctx, actor, req)
	},
		started, encodeAllocation), nil
}

func claimDeed(_ *API, actor ledger.Actor, b contract.PlannedClaim) (ledger.Operation, error) {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Claim(ctx, actor, b.ReservationID, seconds(b.LeaseSeconds), b.Name)
	}, started, encodeAllocation), nil
}

func extendDeed(actor ledger.Actor, id string, by time.Duration) ledger.Operation {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Extend(ctx, actor, id, by)
	}, ok, encodeAllocation)
}

func releaseDeed(_ *API, actor ledger.Actor, b contract.PlannedRelease) (ledger.Operation, error) {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Release(ctx, actor, b.AllocationID)
	},
		ok, encodeAllocation), nil
}

func cancelDeed(_ *API, actor ledger.Actor, b contract.PlannedCancel) (ledger.Operation, error) {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (reservation.Reservation, error) {
		return l.CancelReservation(ctx, actor, b.ReservationID)
	}, ok, encodeReservation), nil
}

func quotaDeed(_ *API, actor ledger.Actor, b contract.PlannedQuota) (ledger.Operation, error) {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (ledger.LimitsChange, error) {
		return l.SetLimits(ctx, actor, b.OrganizationID, b.Version, decodeLimits(b.Limits), b.Force)
	}, ok, quotaChanged), nil
}

func poolDeed(_ *API, actor ledger.Actor, b contract.PlannedPool) (ledger.Operation, error) {
	return deedOf(func(ctx context.Context, l *ledger.Ledger) (ledger.Pool, error) {
		return patchPool(ctx, l, actor, b)
	}, ok, poolAt(time.Time{})), nil // the same whenever it is looked at
}

func agentPlanDeed(a *API, actor ledger.Actor, b contract.AgentPlan) (ledger.Operation, error) {
	want, err := a.desiredPlan(b)
	return deedOf(func(ctx context.Context, l *ledger.Ledger) ([]ledger.WindowOutcome, error) {
		return l.SetDemand(ctx, actor, want)
	},
		ok, outcomes), err
}
