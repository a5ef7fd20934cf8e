package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func planEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "createPlan", Method: http.MethodPost, Path: "/plans", Tag: "plans",
			Status: http.StatusCreated, Policy: auth.AnyKey,
			Summary: "Show what a request would do before it is done"}, createPlan),
		serve(a, operation.Operation{ID: "getPlan", Method: http.MethodGet, Path: "/plans/{id}", Tag: "plans",
			Policy: auth.AnyKey, Summary: "Read a plan; an agent sees its own"}, getPlan),
		serve(a, operation.Operation{ID: "applyPlan", Method: http.MethodPost, Path: "/plans/{id}/apply", Tag: "plans",
			Policy: auth.AnyKey, Problems: []int{http.StatusGone, http.StatusPreconditionFailed},
			Summary: "Apply a plan: exactly what it shows, or nothing"}, applyPlan),
	}
}

// planKind is a change that can be planned.
type planKind struct {
	policy  auth.Policy // of the change's own route
	schema  *huma.Schema
	prepare func(ctx context.Context, v operation.Viewer, request []byte) (verbs.Operation, error)
}

// planOperation turns a plan's request into what the ledger runs, if the actor may
// use the change's own route and the request would pass there.
func planOperation(ctx context.Context, a *API, kind string, request []byte) (verbs.Operation, error) {
	k, ok := a.kinds[kind]
	if !ok {
		return nil, problem.Invalid("kind", "must be one of the kinds of plan", "")
	}
	v := a.viewer(ctx)
	if err := k.policy.Allow(v.Actor); err != nil {
		return nil, err
	}
	if err := checkPlanRequest(a, k.schema, request); err != nil {
		return nil, err
	}
	return k.prepare(ctx, v, request)
}

// checkPlanRequest checks a request that lies inside a body by the rules of its own route.
func checkPlanRequest(a *API, schema *huma.Schema, request []byte) error {
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

// createPlan takes an idempotency key and needs none: a plan changes nothing.
func createPlan(ctx context.Context, a *API, in *struct {
	Idempotency
	Body contract.PlanCreate
},
) (*Created[contract.Plan], error) {
	actor := auth.From(ctx)
	op, err := planOperation(ctx, a, in.Body.Kind, in.Body.Request)
	if err != nil {
		return nil, err
	}
	p := ledger.Preview{Kind: in.Body.Kind, Request: in.Body.Request}
	p, err = a.Ledger.MakePlan(ctx, actor, p, op,
		func(e ledger.Effect, answer []byte) ([]byte, error) { return renderEffect(actor, e, answer) })
	if err != nil {
		return nil, err
	}
	body, err := encodePlan(a, p)
	return &Created[contract.Plan]{Status: http.StatusCreated, Location: "/v1/plans/" + p.ID,
		ETag: formatETag(p.Version), Body: body}, err
}

func getPlan(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Plan], error) {
	p, err := a.Ledger.PlanOf(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := encodePlan(a, p)
	return &One[contract.Plan]{ETag: formatETag(p.Version), Body: body}, err
}

// applyPlan needs no idempotency key: a plan is applied once, however often that
// is asked for.
func applyPlan(ctx context.Context, a *API, in *struct {
	ByID
	Idempotency
},
) (*One[contract.Plan], error) {
	actor := auth.From(ctx)
	p, err := a.Ledger.PlanOf(ctx, actor, in.ID)
	if err != nil {
		return nil, err
	}
	op, err := planOperation(ctx, a, p.Kind, p.Request)
	if err != nil {
		return nil, err
	}
	if p, err = a.Ledger.ApplyPlan(ctx, actor, in.ID, op); err != nil {
		return nil, err
	}
	body, err := encodePlan(a, p)
	return &One[contract.Plan]{ETag: formatETag(p.Version), Body: body}, err
}

// encodePlan adds to what was shown how far the plan is.
func encodePlan(a *API, p ledger.Preview) (contract.Plan, error) {
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
