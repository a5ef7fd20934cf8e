package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// ForecastFilter narrows a list of forecasts. Zero fields do not narrow.
type ForecastFilter struct {
	Source   string    // one of contract.ForecastSources
	Pool     string    // id or name
	State    string    // one of contract.ForecastStates
	From, To time.Time // only windows that start in [From, To)
	PageSize int       // how many a request asks for; the server's default when zero
}

func (f ForecastFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"source": f.Source, "pool": f.Pool, "state": f.State} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.PageSize > 0 {
		q.Set("limit", strconv.Itoa(f.PageSize))
	}
	return q
}

// RecordForecasts records up to 1,000 forecasts, all or none. Sent again they are
// known and change nothing.
func (c *Client) RecordForecasts(ctx context.Context, in contract.AgentForecasts) (contract.Recorded, error) {
	return callFor[contract.Recorded](ctx, c, call{method: http.MethodPost, path: []string{"forecasts"}, body: in})
}

// CloseForecasts says how up to 1,000 forecasts came out, all or none. Sent again
// they are known and change nothing. The problem's Errors name each that cannot
// be closed.
func (c *Client) CloseForecasts(ctx context.Context, in contract.AgentOutcomes) (contract.Recorded, error) {
	return callFor[contract.Recorded](ctx, c, call{method: http.MethodPost, path: []string{"forecasts", "outcomes"},
		body: in})
}

// Forecasts lists forecasts, the latest recorded first.
func (c *Client) Forecasts(ctx context.Context, f ForecastFilter) iter.Seq2[contract.Forecast, error] {
	return listPages[contract.Forecast](ctx, c, f.query(), "forecasts")
}

// Forecast reads a forecast.
func (c *Client) Forecast(ctx context.Context, id string) (contract.Forecast, error) {
	return callFor[contract.Forecast](ctx, c, call{method: http.MethodGet, path: []string{"forecasts", id}})
}

// Calibration reports how far forecasts can be believed, by source; an empty
// source is all. It covers windows that started in the last so many days; zero
// leaves the server's default.
func (c *Client) Calibration(ctx context.Context, source string, days int) (contract.CalibrationReport, error) {
	q := url.Values{}
	if source != "" {
		q.Set("source", source)
	}
	if days > 0 {
		q.Set("days", strconv.Itoa(days))
	}
	return callFor[contract.CalibrationReport](ctx, c,
		call{method: http.MethodGet, path: []string{"reports", "calibration"},
			query: q})
}
