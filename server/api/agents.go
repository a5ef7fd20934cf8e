package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func agentEndpoints(a *API) []endpoint {
	return []endpoint{
		serveChange(a, putAgentPlan,
			func(in *create[contract.AgentPlan]) (contract.AgentPlan, error) { return in.Body, nil }, nil),
	}
}

// putAgentPlan takes an idempotency key and needs none: the plan is the whole, so
// that sending it twice changes nothing.
var putAgentPlan = operation.Change[contract.AgentPlan, []ledger.WindowOutcome, contract.PlanOutcome]{
	Operation: operation.Operation{ID: "putAgentPlan", Method: http.MethodPut, Path: "/agent/plan", Tag: "agents",
		Policy: auth.Agents, Summary: "Replace an agent's whole plan for a pool"},
	Plan: contract.PlanAgentPlan,
	Check: func(_ context.Context, v operation.Viewer, b *contract.AgentPlan) error {
		return checkWindows(v.Now, b.Windows)
	},
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.AgentPlan) ([]ledger.WindowOutcome, error) {
		return l.SetDemand(ctx, actor, decodeDemand(b))
	},
	Encode: forAnybody(encodePlanOutcome),
}

// checkWindows refuses windows that are over or too far ahead.
func checkWindows(now time.Time, windows []contract.AgentWindow) error {
	for i, w := range windows {
		at := func(field string) string { return fmt.Sprintf("windows[%d].%s", i, field) }
		if err := notTooFar(now, at("start"), w.Start); err != nil {
			return err
		}
		if !w.End.After(now) {
			return problem.Invalid(at("end"), "must be in the future", "")
		}
	}
	return nil
}

// decodeDemand is what a body asks of the ledger.
func decodeDemand(b contract.AgentPlan) ledger.Demand {
	want := ledger.Demand{Pool: b.PoolID}
	for _, w := range b.Windows {
		want.Windows = append(want.Windows, ledger.DemandWindow{Start: truncateTime(w.Start),
			End: truncateTime(w.End), GPUs: w.GPUs, Probability: w.Probability, ReasonCode: w.ReasonCode})
	}
	return want
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
