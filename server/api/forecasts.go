package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func forecastEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "recordForecasts", Method: http.MethodPost, Path: "/forecasts",
			Tag: "forecasts", Policy: auth.AgentOwn,
			Summary: "Record up to 1,000 forecasts before their windows begin, all or none"}, recordForecasts),
		serve(a, operation.Operation{ID: "closeForecasts", Method: http.MethodPost, Path: "/forecasts/outcomes",
			Tag: "forecasts", Policy: auth.AgentOwn,
			Summary: "Record the outcomes of up to 1,000 forecasts, once, all or none"}, closeForecasts),
		serve(a, operation.Operation{ID: "listForecasts", Method: http.MethodGet, Path: "/forecasts", Tag: "forecasts",
			Policy: auth.AnyKey, Summary: "List forecasts, the latest first; an agent sees its own"},
			listForecasts),
		serve(a, operation.Operation{ID: "getForecast", Method: http.MethodGet, Path: "/forecasts/{id}",
			Tag: "forecasts", Policy: auth.AnyKey, Summary: "Read a forecast"}, getForecast),
		serve(a, operation.Operation{ID: "calibration", Method: http.MethodGet, Path: "/reports/calibration",
			Tag: "forecasts", Policy: auth.Viewer, Summary: "How reliable forecasts were, by source"},
			reportCalibration),
	}
}

// recordForecasts takes an idempotency key and needs none: forecasts have ids of
// their sender's choice.
func recordForecasts(ctx context.Context, a *API, in *struct {
	Idempotency
	Body contract.AgentForecasts
},
) (*One[contract.Recorded], error) {
	list := make([]ledger.Forecast, len(in.Body.Forecasts))
	for i, f := range in.Body.Forecasts {
		if err := notTooFar(a.Clock.Now(), fmt.Sprintf("forecasts[%d].start", i), f.Start); err != nil {
			return nil, err
		}
		list[i] = decodeForecast(f)
	}
	added, err := a.Ledger.RecordForecasts(ctx, auth.From(ctx), list)
	return encodeRecorded(len(list), added, err)
}

func encodeRecorded(sent, added int, err error) (*One[contract.Recorded], error) {
	if err != nil {
		return nil, err
	}
	return &One[contract.Recorded]{Body: contract.Recorded{New: added, Known: sent - added}}, nil
}

func decodeForecast(f contract.AgentForecast) ledger.Forecast {
	return ledger.Forecast{
		ID: f.ID, PoolID: f.PoolID, Source: ledger.ForecastSource(f.Source), ReasonCode: f.ReasonCode,
		Model: f.Model, PromptHash: f.PromptHash, EvidenceHash: f.EvidenceHash,
		IssuedAt: truncateTime(f.IssuedAt), Start: truncateTime(f.Start), End: truncateTime(f.End),
		Said: forecast.Summary{P10: f.GPUs.P10, P50: f.GPUs.P50, P90: f.GPUs.P90, Any: f.Probability,
			Mean: f.GPUs.Mean},
		Baseline: decodeFraction(f.BaselineProbability), Influence: decodeFraction(f.Influence),
	}
}

func decodeFraction(x *float64) ledger.Fraction {
	if x == nil {
		return ledger.Fraction{}
	}
	return ledger.FractionOf(*x)
}

func encodeFraction(f ledger.Fraction) *float64 {
	if x, ok := f.Value(); ok {
		return &x
	}
	return nil
}

func closeForecasts(ctx context.Context, a *API, in *struct {
	Idempotency
	Body contract.AgentOutcomes
},
) (*One[contract.Recorded], error) {
	list := make([]ledger.ForecastClosing, len(in.Body.Outcomes))
	for i, o := range in.Body.Outcomes {
		list[i] = ledger.ForecastClosing{ID: o.ID, GPUs: o.GPUs, CountedAt: truncateTime(o.CountedAt)}
	}
	closed, err := a.Ledger.CloseForecasts(ctx, auth.From(ctx), list)
	return encodeRecorded(len(list), closed, err)
}

func listForecasts(ctx context.Context, a *API, in *struct {
	Page
	OfOrganization
	Source string    `query:"source" enum:"statistics,llm,extractor,rule,person"`
	Pool   string    `query:"pool" maxLength:"64" doc:"Id or name."`
	State  string    `query:"state" enum:"open,closed" doc:"Closed: its outcome is known."`
	From   time.Time `query:"from" doc:"Only windows that start at this time or later."`
	To     time.Time `query:"to" doc:"Only windows that start before this time."`
},
) (out *ListOut[contract.Forecast], err error) {
	if !in.From.IsZero() && !in.To.IsZero() && !in.From.Before(in.To) {
		return nil, problem.Parameter("to", "must be after from")
	}
	actor := auth.From(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		pool, err := a.resolvePool(ctx, r, in.Pool)
		if err != nil {
			return err
		}
		f := ledger.ForecastFilter{Source: ledger.ForecastSource(in.Source), PoolID: pool, MadeBy: ownKeyOnly(actor),
			State: ledger.ForecastState(in.State), From: in.From, To: in.To}
		out, err = readPage(in.Page, "fct", func(p ledger.Page) ([]ledger.Forecast, error) {
			if f.Before, err = strconv.ParseInt("0"+p.After, 10, 64); err != nil {
				return nil, problem.Parameter("cursor", "must be next_cursor of the page before")
			}
			return r.Forecasts(s, f, p.Limit)
		}, func(f ledger.Forecast) string { return strconv.FormatInt(f.Seq, 10) }, encodeForecast)
		return err
	})
	return out, err
}

// getForecast shows an operator the latest of those organizations that have the id.
func getForecast(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Forecast], error) {
	actor := auth.From(ctx)
	out := &One[contract.Forecast]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		f := ledger.ForecastFilter{IDs: []string{in.ID}, MadeBy: ownKeyOnly(actor)}
		found, err := r.Forecasts(actor.Scope(), f, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return ledger.ErrNotFound
		}
		out.Body = encodeForecast(found[0])
		return nil
	})
	return out, err
}

func encodeForecast(f ledger.Forecast) contract.Forecast {
	out := contract.Forecast{
		ID: f.ID, OrganizationID: f.OrganizationID, PoolID: f.PoolID, MadeBy: f.MadeBy,
		State:  string(ledger.ForecastOpen),
		Source: string(f.Source), ReasonCode: f.ReasonCode, Model: f.Model, PromptHash: f.PromptHash,
		EvidenceHash: f.EvidenceHash,
		IssuedAt:     f.IssuedAt.UTC(), RecordedAt: f.RecordedAt.UTC(), Start: f.Start.UTC(), End: f.End.UTC(),
		GPUs:        contract.Quantiles{P10: f.Said.P10, P50: f.Said.P50, P90: f.Said.P90, Mean: f.Said.Mean},
		Probability: f.Said.Any, BaselineProbability: encodeFraction(f.Baseline),
		Influence: encodeFraction(f.Influence),
	}
	if o := f.Outcome; f.Closed() {
		out.State = string(ledger.ForecastClosed)
		out.Outcome = &contract.ForecastOutcome{
			GPUs: o.GPUs, CountedAt: o.CountedAt.UTC(), ClosedAt: o.ClosedAt.UTC(), Pinball: o.Score.Pinball,
			Brier:   o.Score.Brier,
			LogLoss: o.Score.LogLoss, Inside: o.Score.Inside, BaselineBrier: encodeFraction(o.BaselineBrier),
		}
	}
	return out
}
