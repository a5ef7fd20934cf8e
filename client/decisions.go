package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/forewarm/forewarm/contract"
)

// DecisionFilter narrows a list of decisions. Zero fields do not narrow.
type DecisionFilter struct {
	Subject  string // id of what it is about
	Pool     string // id or name
	Kind     string // one of contract.DecisionKinds
	PageSize int    // how many a request asks for; the server's default when zero
}

func (f DecisionFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"subject": f.Subject, "pool": f.Pool, "kind": f.Kind} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.PageSize > 0 {
		q.Set("limit", strconv.Itoa(f.PageSize))
	}
	return q
}

// Decisions lists decisions without their records, newest first.
func (c *Client) Decisions(ctx context.Context, f DecisionFilter) iter.Seq2[contract.Decision, error] {
	return listPages[contract.Decision](ctx, c, f.query(), "decisions")
}

// Decision reads a decision with its record.
func (c *Client) Decision(ctx context.Context, id string) (contract.Decision, error) {
	return callFor[contract.Decision](ctx, c, call{method: http.MethodGet, path: []string{"decisions", id}})
}

// ExplainReservation tells why a reservation is as it is.
func (c *Client) ExplainReservation(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c,
		call{method: http.MethodGet, path: []string{"reservations", id, "explain"}})
}

// ExplainAllocation tells why an allocation is as it is.
func (c *Client) ExplainAllocation(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c,
		call{method: http.MethodGet, path: []string{"allocations", id, "explain"}})
}

// ExplainSchedule tells what becomes of a schedule's next date.
func (c *Client) ExplainSchedule(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c,
		call{method: http.MethodGet, path: []string{"schedules", id, "explain"}})
}

// ExplainNode tells why a node is as it is.
func (c *Client) ExplainNode(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c, call{method: http.MethodGet, path: []string{"nodes", id, "explain"}})
}

// ExplainPool tells how a pool serves, and what work there waits for.
func (c *Client) ExplainPool(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c, call{method: http.MethodGet, path: []string{"pools", id, "explain"}})
}

// Explain tells what would become of a request.
func (c *Client) Explain(ctx context.Context, in contract.ExplainRequest) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c, call{method: http.MethodPost, path: []string{"explain"}, body: in})
}

// CreatePlan shows what a request would do. Kind is one of contract.PlanKinds,
// and request its body.
func (c *Client) CreatePlan(ctx context.Context, in contract.PlanCreate) (contract.Plan, error) {
	return callFor[contract.Plan](ctx, c, call{method: http.MethodPost, path: []string{"plans"}, body: in})
}

// Plan reads a plan.
func (c *Client) Plan(ctx context.Context, id string) (contract.Plan, error) {
	return callFor[contract.Plan](ctx, c, call{method: http.MethodGet, path: []string{"plans", id}})
}

// ApplyPlan does exactly what a plan shows, or nothing: then the problem's code
// is contract.CodePlanStale or contract.CodePlanExpired.
func (c *Client) ApplyPlan(ctx context.Context, id string) (contract.Plan, error) {
	return callFor[contract.Plan](ctx, c, call{method: http.MethodPost, path: []string{"plans", id, "apply"}})
}
