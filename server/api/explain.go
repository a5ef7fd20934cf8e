package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func explanationEndpoints(a *API) []endpoint {
	return []endpoint{
		serveExplanation(a, "reservations", operation.Operation{ID: "explainReservation", Policy: auth.AnyKey,
			Summary: "Explain a reservation's state, and what happens next"}, a.Ledger.ExplainReservation),
		serveExplanation(a, "allocations", operation.Operation{ID: "explainAllocation", Policy: auth.Viewer,
			Summary: "Explain an allocation's state, and what happens next"}, a.Ledger.ExplainAllocation),
		serveExplanation(a, "jobs", operation.Operation{ID: "explainJob", Policy: auth.Viewer,
			Summary: "Explain a job's state, and everything that it waits for"}, a.Ledger.ExplainJob),
		serveExplanation(a, "schedules", operation.Operation{ID: "explainSchedule", Policy: auth.Viewer,
			Summary: "Explain what becomes of a schedule's next date, and what blocks it"}, a.Ledger.ExplainSchedule),
		serveExplanation(a, "nodes", operation.Operation{ID: "explainNode", Policy: auth.Viewer,
			Summary: "Explain a node's state, and what happens next"}, a.Ledger.ExplainNode),
		serveExplanation(a, "pools", operation.Operation{ID: "explainPool", Policy: auth.Viewer,
			Summary: "Explain how a pool serves, what stands in its way, and what work there waits for"},
			a.Ledger.ExplainPool),
		serve(a, operation.Operation{ID: "explainRequest", Method: http.MethodPost, Path: "/explain", Tag: "decisions",
			Policy: auth.Member, Summary: "Explain a request without making it: every blocker, offers, the wait"},
			explainRequest),
	}
}

// serveExplanation serves what the ledger explains of one thing.
func serveExplanation(a *API, nouns string, op operation.Operation,
	verb func(context.Context, ledger.Actor, string) (ledger.Explanation, error)) endpoint {
	op.Method, op.Path, op.Tag = http.MethodGet, "/"+nouns+"/{id}/explain", "decisions"
	return serve(a, op, func(ctx context.Context, _ *API, in *struct{ ByID }) (*One[contract.Explanation], error) {
		actor := auth.From(ctx)
		e, err := verb(ctx, actor, in.ID)
		return &One[contract.Explanation]{Body: encodeExplanation(actor, e)}, err
	})
}

// explainRequest changes nothing, so that its idempotency key is not needed.
func explainRequest(ctx context.Context, a *API, in *struct {
	Idempotency
	Body contract.ExplainRequest
},
) (*One[contract.Explanation], error) {
	actor, b := auth.From(ctx), in.Body
	var op verbs.Operation
	var err error
	switch {
	case b.Reservation != nil && b.Allocation == nil:
		op, err = createReservation.ForLedger(ctx, a.viewer(ctx), *b.Reservation)
	case b.Allocation != nil && b.Reservation == nil:
		op, err = createAllocation.ForLedger(ctx, a.viewer(ctx), *b.Allocation)
	default:
		err = problem.Invalid("reservation", "or allocation must be given, and not both", "")
	}
	if err != nil {
		return nil, err
	}
	e, err := a.Ledger.ExplainRequest(ctx, actor, op)
	return &One[contract.Explanation]{Body: encodeExplanation(actor, e)}, err
}

func encodeExplanation(actor ledger.Actor, e ledger.Explanation) contract.Explanation {
	out := contract.Explanation{Subject: e.Subject, Kind: e.Kind, State: e.State, Reason: e.Reason, Summary: e.Summary,
		PoolID: e.PoolID,
		Since:  e.Since.UTC(), Degraded: e.Degraded, Blockers: []contract.BlockedBy{}, Offers: []contract.Offer{},
		Wait: encodeWait(e.Wait), Waits: encodeWaits(e.Waits),
		Next: []contract.NextStep{}, Decisions: []contract.Decision{}, At: e.At.UTC()}
	for _, b := range e.Blockers {
		out.Blockers = append(out.Blockers, encodeBlocker(b))
	}
	if e.Refused != nil {
		out.Blockers = append(out.Blockers, encodeRefusal(e)...)
		out.Offers = append(out.Offers, problem.Offers(e.Refused)...)
	}
	out.Offers = append(out.Offers, problem.OfferList(e.Instead)...)
	for _, s := range e.Next {
		out.Next = append(out.Next, contract.NextStep{Code: s.Code, At: s.At.UTC(), Message: s.Message})
	}
	for _, d := range e.Decisions {
		out.Decisions = append(out.Decisions, encodeDecision(d))
	}
	out.Displaced, out.Others = splitDisplaced(actor, e.Effect)
	return out
}

func encodeBlocker(b ledger.Blocker) contract.BlockedBy {
	out := contract.BlockedBy{Code: b.Code, Message: b.Message, Evidence: append([]string{}, b.Evidence...),
		ClearsAt: encodeBand(b.ClearsAt)}
	if b.Fix != "" {
		out.Fix = &contract.Fix{Label: "Try", Command: b.Fix}
	}
	return out
}

func encodeBand(b *ledger.Band) *contract.InstantBand {
	if b == nil {
		return nil
	}
	return &contract.InstantBand{P10: b.P10.UTC().Round(tenth), P50: b.P50.UTC().Round(tenth),
		P90: b.P90.UTC().Round(tenth)}
}

// encodeRefusal lists what admission says, each with its way out.
func encodeRefusal(e ledger.Explanation) []contract.BlockedBy {
	var out []contract.BlockedBy
	for _, b := range problem.Blockers(e.Refused) {
		x := contract.BlockedBy{Code: b.Code, Message: b.Message, Evidence: []string{}, Unit: b.Unit, Limit: b.Limit,
			Asked: b.Asked}
		if label, ok := problem.FixFor(b.Code, e.Refused); ok {
			x.Fix = &contract.Fix{Label: label}
			if e.Kind == "job" && b.Code == "capacity_exhausted" {
				x.Fix = fixOfJob(e)
			}
		}
		if b.Code == "capacity_exhausted" {
			x.ClearsAt = encodeBand(e.ClearsAt())
		}
		out = append(out, x)
	}
	return out
}

// fixOfJob is how a job that waits for room begins earlier than by itself.
func fixOfJob(e ledger.Explanation) *contract.Fix {
	if e.Take == "" {
		return &contract.Fix{Label: "It starts by itself once there is room, and its turn has come"}
	}
	return &contract.Fix{Label: "It starts by itself once there is room; one of the offers is taken by", Command: e.Take}
}
