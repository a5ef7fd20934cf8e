package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) registerAgents() {
	registerOperation(a, operation{http.MethodPut, "/agent/plan", "putAgentPlan", "agents",
		"Replace an agent's whole plan for a pool", 0}, a.putAgentPlan)
}

// putAgentPlan takes an idempotency key and needs none: the plan is the whole, so
// that sending it twice changes nothing.
func (a *API) putAgentPlan(ctx context.Context, in *struct {
	Idempotency
	Body contract.AgentPlan
},
) (*One[contract.PlanOutcome], error) {
	want, err := a.desiredPlan(in.Body)
	if err != nil {
		return nil, err
	}
	got, err := a.Ledger.SetDemand(ctx, auth.From(ctx), want)
	if err != nil {
		return nil, err
	}
	return &One[contract.PlanOutcome]{Body: encodePlanOutcome(got)}, nil
}

// desiredPlan is what a body asks of the ledger.
func (a *API) desiredPlan(b contract.AgentPlan) (ledger.Demand, error) {
	want := ledger.Demand{Pool: b.PoolID}
	for i, w := range b.Windows {
		at := func(field string) string { return fmt.Sprintf("windows[%d].%s", i, field) }
		if err := a.notTooFar(at("start"), w.Start); err != nil {
			return want, err
		}
		if !w.End.After(a.Clock.Now()) {
			return want, problem.Invalid(at("end"), "must be in the future", "")
		}
		want.Windows = append(want.Windows, ledger.DemandWindow{Start: truncateTime(w.Start), End: truncateTime(w.End),
			GPUs:        w.GPUs,
			Probability: w.Probability, ReasonCode: w.ReasonCode})
	}
	return want, nil
}

func encodePlanOutcome(got []ledger.WindowOutcome) contract.PlanOutcome {
	out := contract.PlanOutcome{Windows: make([]contract.WindowOutcome, 0, len(got))}
	for _, o := range got {
		out.Windows = append(out.Windows, encodeWindowOutcome(o))
	}
	return out
}

func encodeWindowOutcome(o ledger.WindowOutcome) contract.WindowOutcome {
	out := contract.WindowOutcome{Start: o.Window.Start.UTC(), End: o.Window.End.UTC(), GPUs: o.Window.GPUs,
		ReservationIDs: append([]string{}, o.Reservations...), Kept: o.Kept, Placed: o.Placed}
	if o.Refused != nil {
		out.Blockers, out.Offers = problem.Blockers(o.Refused), problem.Offers(o.Refused)
	}
	return out
}
