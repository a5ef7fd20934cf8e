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

func (a *API) registerPlans() {
	a.kinds = a.planKinds()
	registerOperation(a, operation{http.MethodPost, "/plans", "createPlan", "plans",
		"See what a request would do, before it does it", 201}, a.createPlan)
	registerOperation(a, operation{http.MethodGet, "/plans/{id}", "getPlan", "plans", "Read a plan; an agent sees its own", 0},
		a.getPlan)
	registerOperation(a, operation{http.MethodPost, "/plans/{id}/apply", "applyPlan", "plans",
		"Do exactly what a plan shows, or nothing", 0}, a.applyPlan)
}

// planKind is a verb that can be planned.
type planKind struct {
	route     string // whose policy holds for it
	schema    *huma.Schema
	operation func(a *API, actor ledger.Actor, request []byte) (ledger.Operation, error)
}

// kindOf describes a kind whose request is a T.
func kindOf[T any](a *API, route string, op func(*API, ledger.Actor, T) (ledger.Operation, error)) planKind {
	return planKind{
		route: route, schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, ""),
		operation: func(a *API, actor ledger.Actor, request []byte) (ledger.Operation, error) {
			var body T
			if err := json.Unmarshal(request, &body); err != nil {
				return nil, problem.Invalid("request", "must be the body of the kind's own route", "")
			}
			return op(a, actor, body)
		},
	}
}

func (a *API) planKinds() map[string]planKind {
	return map[string]planKind{
		contract.PlanReserve:   kindOf(a, "POST /v1/reservations", reserveOperation),
		contract.PlanAllocate:  kindOf(a, "POST /v1/allocations", allocateOperation),
		contract.PlanClaim:     kindOf(a, "POST /v1/reservations/:id/claim", claimOperation),
		contract.PlanRelease:   kindOf(a, "POST /v1/allocations/:id/release", releaseOperation),
		contract.PlanCancel:    kindOf(a, "DELETE /v1/reservations/:id", cancelOperation),
		contract.PlanQuota:     kindOf(a, "PUT /v1/organizations/:id/quota", quotaOperation),
		contract.PlanPool:      kindOf(a, "PATCH /v1/pools/:id", poolOperation),
		contract.PlanAgentPlan: kindOf(a, "PUT /v1/agent/plan", agentPlanOperation),
	}
}

// planOperation turns a plan's request into code, if the actor may use the verb's own
// route and the request would pass there.
func (a *API) planOperation(actor ledger.Actor, kind string, request []byte) (ledger.Operation, error) {
	k, ok := a.kinds[kind]
	if !ok {
		return nil, problem.Invalid("kind", "must be one of the kinds of plan", "")
	}
	if err := auth.Policies[k.route].Allow(actor); err != nil {
		return nil, err
	}
	if err := a.checkPlanRequest(k.schema, request); err != nil {
		return nil, err
	}
	return k.operation(a, actor, request)
}

// checkPlanRequest checks a request that lies inside a body by the rules of its own route.
func (a *API) checkPlanRequest(schema *huma.Schema, request []byte) error {
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
	op, err := of(a, actor, body)
	if err != nil {
		return nil, err
	}
	_, answer, err := a.Ledger.DryRun(ctx, actor, op)
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
	op, err := a.planOperation(actor, in.Body.Kind, in.Body.Request)
	if err != nil {
		return nil, err
	}
	p := ledger.Preview{Kind: in.Body.Kind, Request: in.Body.Request}
	p, err = a.Ledger.MakePlan(ctx, actor, p, op,
		func(e ledger.Effect, answer []byte) ([]byte, error) { return renderEffect(actor, e, answer) })
	if err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &Created[contract.Plan]{Status: http.StatusCreated, Location: "/v1/plans/" + p.ID, ETag: formatETag(p.Version),
		Body: body}, err
}

func (a *API) getPlan(ctx context.Context, in *struct{ ByID }) (*One[contract.Plan], error) {
	p, err := a.Ledger.PlanOf(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &One[contract.Plan]{ETag: formatETag(p.Version), Body: body}, err
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
	op, err := a.planOperation(actor, p.Kind, p.Request)
	if err != nil {
		return nil, err
	}
	if p, err = a.Ledger.ApplyPlan(ctx, actor, in.ID, op); err != nil {
		return nil, err
	}
	body, err := a.encodePlan(p)
	return &One[contract.Plan]{ETag: formatETag(p.Version), Body: body}, err
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

// newOperation calls one verb and encodes what it answers.
func newOperation[T, O any](verb func(context.Context, *ledger.Ledger) (T, error), status func(T) int,
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

func statusOK[T any](T) int { return http.StatusOK }

func reserveOperation(a *API, actor ledger.Actor, b contract.ReservationCreate) (ledger.Operation, error) {
	req, err := a.reserveRequest(b)
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (reservation.Reservation, error) {
		return l.Reserve(ctx, actor, req)
	},
		reservationStatus, encodeReservation), err
}

func allocateOperation(_ *API, actor ledger.Actor, b contract.AllocationCreate) (ledger.Operation, error) {
	req := allocateRequest(b)
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Allocate(ctx, actor, req)
	},
		allocationStatus, encodeAllocation), nil
}

func claimOperation(_ *API, actor ledger.Actor, b contract.PlannedClaim) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Claim(ctx, actor, b.ReservationID, seconds(b.LeaseSeconds), b.Name)
	}, allocationStatus, encodeAllocation), nil
}

func extendOperation(actor ledger.Actor, id string, by time.Duration) ledger.Operation {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Extend(ctx, actor, id, by)
	}, statusOK, encodeAllocation)
}

func releaseOperation(_ *API, actor ledger.Actor, b contract.PlannedRelease) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (allocation.Allocation, error) {
		return l.Release(ctx, actor, b.AllocationID)
	},
		statusOK, encodeAllocation), nil
}

func cancelOperation(_ *API, actor ledger.Actor, b contract.PlannedCancel) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (reservation.Reservation, error) {
		return l.CancelReservation(ctx, actor, b.ReservationID)
	}, statusOK, encodeReservation), nil
}

func quotaOperation(_ *API, actor ledger.Actor, b contract.PlannedQuota) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (ledger.LimitsChange, error) {
		return l.SetLimits(ctx, actor, b.OrganizationID, b.Version, decodeLimits(b.Limits), b.Force)
	}, statusOK, encodeQuotaChange), nil
}

func poolOperation(_ *API, actor ledger.Actor, b contract.PlannedPool) (ledger.Operation, error) {
	return newOperation(func(ctx context.Context, l *ledger.Ledger) (ledger.Pool, error) {
		return patchPool(ctx, l, actor, b)
	}, statusOK, encodePoolAt(time.Time{})), nil // the same whenever it is looked at
}

func agentPlanOperation(a *API, actor ledger.Actor, b contract.AgentPlan) (ledger.Operation, error) {
	want, err := a.desiredPlan(b)
	return newOperation(func(ctx context.Context, l *ledger.Ledger) ([]ledger.WindowOutcome, error) {
		return l.SetDemand(ctx, actor, want)
	},
		statusOK, encodePlanOutcome), err
}
