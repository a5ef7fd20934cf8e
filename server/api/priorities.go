package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func priorityEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "listPriorities", Method: http.MethodGet, Path: "/priorities", Tag: "jobs",
			Policy: auth.Viewer, Summary: "List the priority classes of jobs, the lowest first"}, listPriorities),
	}
}

func listPriorities(ctx context.Context, a *API, _ *struct{}) (*ListOut[contract.PriorityClass], error) {
	actor := auth.From(ctx)
	var of ledger.Organization
	if actor.OrganizationID != "" {
		err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
			of, err = r.Organization(ledger.Scope{All: true}, actor.OrganizationID)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	out, rules := &ListOut[contract.PriorityClass]{}, a.Ledger.Scheduling().Now().Of("")
	for _, name := range rules.Priorities.Names() {
		c := rules.Priorities.Of(job.Priority(name))
		out.Body.Items = append(out.Body.Items, contract.PriorityClass{Name: name,
			Default: name == string(rules.Priorities.CountsAs("")), Preempts: !c.NoPreempting, Preemptible: c.Preemptible,
			Allowed: actor.Role.Includes(ledger.Member) &&
				rules.CheckPriority("", job.Priority(name), actor.Role, of.Name) == nil,
			OverdueSeconds: int64(c.Overdue.Seconds())})
	}
	return out, nil
}
