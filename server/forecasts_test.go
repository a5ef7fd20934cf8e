package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// newForecast is a forecast of the hour that begins now.
func (w *world) newForecast(id string) contract.AgentForecast {
	w.t.Helper()
	now, half := w.clock.Now(), 0.5
	return contract.AgentForecast{
		ID: id, PoolID: ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/lab", "").ID, Source: "llm",
		ReasonCode: "announced_work",
		IssuedAt:   now, Start: now, End: now.Add(time.Hour),
		GPUs:                contract.Quantiles{P10: 0, P50: 1, P90: 4, Mean: 1.5},
		Probability:         0.75,
		BaselineProbability: &half, Influence: &half, Model: "m", PromptHash: strings.Repeat("0", 64),
		EvidenceHash: strings.Repeat("f", 64),
	}
}

// recordForecast records one and returns its id.
func (w *world) recordForecast(key, id string) string {
	w.t.Helper()
	got := ask[contract.Recorded](w, key, http.MethodPost, "/v1/forecasts",
		w.encodeBody(contract.AgentForecasts{Forecasts: []contract.AgentForecast{w.newForecast(id)}}))
	require.Equal(w.t, contract.Recorded{New: 1}, got)
	return id
}

func (w *world) encodeBody(v any) string {
	w.t.Helper()
	text, err := json.Marshal(v)
	require.NoError(w.t, err)
	return string(text)
}

// A full batch, with every field at its longest, fits into a body, comes back
// field by field and page by page, and is closed in one request.
func TestAFullBatchOfForecasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createAgentKey("bot")
	var batch contract.AgentForecasts
	var outcomes contract.AgentOutcomes
	want := w.newForecast("")
	want.Model, want.Probability, want.GPUs.Mean = strings.Repeat("m", 64), 1/3.0, math.Pi
	for i := range 1000 {
		want.ID = fmt.Sprintf("fct_%026d", i)
		batch.Forecasts = append(batch.Forecasts, want)
		outcomes.Outcomes = append(outcomes.Outcomes, contract.AgentOutcome{ID: want.ID, GPUs: 3, CountedAt: want.End})
	}
	require.Equal(t, contract.Recorded{New: 1000},
		ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts", w.encodeBody(batch)))
	w.clock.Advance(time.Hour)
	require.Equal(t, contract.Recorded{New: 1000},
		ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts/outcomes", w.encodeBody(outcomes)))
	require.Equal(t, contract.Recorded{Known: 1000},
		ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts", w.encodeBody(batch)))
	for i, path := 999, "/v1/forecasts?limit=200"; path != ""; {
		page := ask[contract.List[contract.Forecast]](w, "bot", http.MethodGet, path, "")
		for _, f := range page.Items {
			require.Equal(t, batch.Forecasts[i], contract.AgentForecast{
				ID: f.ID, PoolID: f.PoolID, Source: f.Source, ReasonCode: f.ReasonCode, IssuedAt: f.IssuedAt,
				Start: f.Start, End: f.End, GPUs: f.GPUs,
				Probability: f.Probability, BaselineProbability: f.BaselineProbability, Influence: f.Influence,
				Model:      f.Model,
				PromptHash: f.PromptHash, EvidenceHash: f.EvidenceHash,
			})
			require.Equal(t, 3, f.Outcome.GPUs)
			i--
		}
		if path = ""; page.NextCursor != "" {
			path = "/v1/forecasts?limit=200&cursor=" + page.NextCursor
		} else {
			require.Equal(t, -1, i)
		}
	}
	w.refuseAll(map[string]bad{
		"one too many": {key: "bot", path: "/v1/forecasts",
			body: w.encodeBody(contract.AgentForecasts{Forecasts: append(batch.Forecasts, want)}),
			code: contract.CodeValidationFailed, pointer: "/forecasts"},
		"one outcome too many": {key: "bot", path: "/v1/forecasts/outcomes",
			body: w.encodeBody(contract.AgentOutcomes{Outcomes: append(outcomes.Outcomes, outcomes.Outcomes[0])}),
			code: contract.CodeValidationFailed, pointer: "/outcomes"},
	})
}

// No value outside of its rule is taken, above all no words.
func TestForecastsHoldNoWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createAgentKey("bot")
	good := w.encodeBody(contract.AgentForecasts{Forecasts: []contract.AgentForecast{
		w.newForecast("fct_00000000000000000000000001")}})
	cases := map[string]bad{}
	for name, c := range map[string]struct{ from, to, pointer string }{
		"words in model":    {`"model":"m"`, `"model":"the boss said so"`, "/model"},
		"capitals in model": {`"model":"m"`, `"model":"Qwen"`, "/model"},
		"long model":        {`"model":"m"`, `"model":"` + strings.Repeat("m", 65) + `"`, "/model"},
		"words for a hash":  {strings.Repeat("f", 64), "why", "/evidence_hash"},
		"short hash":        {strings.Repeat("0", 64), strings.Repeat("0", 63), "/prompt_hash"},
		"words for an id":   {"fct_00000000000000000000000001", "tomorrow", "/id"},
		"own reason":        {"announced_work", "because", "/reason_code"},
		"own source":        {`"llm"`, `"oracle"`, "/source"},
		"own field":         {`"model":"m"`, `"model":"m","note":"hello"`, "/note"},
		"chance above 1":    {`"probability":0.75`, `"probability":1.5`, "/probability"},
		"negative baseline": {`"baseline_probability":0.5`, `"baseline_probability":-0.1`, "/baseline_probability"},
		"influence":         {`"influence":0.5`, `"influence":2`, "/influence"},
		"negative GPUs":     {`"p10":0`, `"p10":-1`, "/gpus/p10"},
		"far too many GPUs": {`"p90":4`, `"p90":10000000`, "/gpus/p90"},
		"crossed quantiles": {`"p50":1`, `"p50":5`, "/gpus"},
		"negative mean":     {`"mean":1.5`, `"mean":-1`, "/gpus/mean"},
		"far ahead":         {`"start":"2026`, `"start":"2028`, "/start"},
		"backwards":         {`"end":"2026-03-02`, `"end":"2026-03-01`, "/end"},
		"hindsight":         {`"issued_at":"2026-03-02`, `"issued_at":"2026-03-03`, "/issued_at"},
		"unknown pool":      {`"pool_id":"pol_`, `"pool_id":"pol_1`, "/pool_id"},
	} {
		body := strings.Replace(good, c.from, c.to, 1)
		if name == "unknown pool" { // of the right form
			at := strings.Index(good, "pol_") + 4
			body = good[:at] + "zz" + good[at+2:]
		}
		require.NotEqual(t, good, body, name)
		cases[name] = bad{key: "bot", path: "/v1/forecasts", body: body, code: contract.CodeValidationFailed,
			pointer: "/forecasts/0" + c.pointer}
	}
	cases["none"] = bad{key: "bot", path: "/v1/forecasts", body: `{"forecasts":[]}`,
		code: contract.CodeValidationFailed, pointer: "/forecasts"}
	for name, path := range map[string]string{
		"days": "/v1/reports/calibration?days=0", "state": "/v1/forecasts?state=maybe",
		"source": "/v1/forecasts?source=oracle",
		"pool":   "/v1/forecasts?pool=nowhere", "to": "/v1/forecasts?from=2026-03-02T08:00:00Z&to=2026-03-02T08:00:00Z",
	} {
		cases["query "+name] = bad{method: http.MethodGet, path: path, code: contract.CodeInvalidParameter,
			pointer: name}
	}
	w.refuseAll(cases)
	require.Empty(t, ask[contract.List[contract.Forecast]](w, "root", http.MethodGet, "/v1/forecasts", "").Items)
}

// A key that is lost must not fill the disk.
func TestAKeyRecordsSoManyForecastsADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), ids.UUID{}, ledger.Config{ForecastsPerDay: 1})
	})
	w.createPool()
	w.createAgentKey("bot")
	first := w.recordForecast("bot", "fct_00000000000000000000000001")
	batch := contract.AgentForecasts{Forecasts: []contract.AgentForecast{
		w.newForecast("fct_00000000000000000000000002")}}
	got := w.send("bot", http.MethodPost, "/v1/forecasts", w.encodeBody(batch))
	require.Equal(t, http.StatusTooManyRequests, got.Code, got.Body)
	require.Equal(t, "57600", got.Header().Get("Retry-After"), "until the next UTC day")
	require.Equal(t, contract.CodeRateLimited,
		w.refuse("bot", http.MethodPost, "/v1/forecasts", w.encodeBody(batch)).Code)
	list := ask[contract.List[contract.Forecast]](w, "bot", http.MethodGet, "/v1/forecasts", "").Items
	require.Len(t, list, 1)
	require.Equal(t, first, list[0].ID)
}

// The report tells the mean of what was said and seen, and compares with the
// baseline over the same forecasts only.
func TestCalibrationReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createAgentKey("bot")
	var batch contract.AgentForecasts
	var outcomes contract.AgentOutcomes
	for i, c := range []struct {
		said     float64
		baseline float64 // below 0: none
		gpus     int
	}{{0.9, 0.5, 4}, {0.95, 0.5, 1}, {0.2, 0.5, 0}, {0.25, -1, 9}} {
		f := w.newForecast(fmt.Sprintf("fct_%026d", i))
		f.Probability, f.BaselineProbability = c.said, &c.baseline
		if c.baseline < 0 {
			f.BaselineProbability = nil
		}
		batch.Forecasts = append(batch.Forecasts, f)
		outcomes.Outcomes = append(outcomes.Outcomes, contract.AgentOutcome{ID: f.ID, GPUs: c.gpus, CountedAt: f.End})
	}
	ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts", w.encodeBody(batch))
	require.Empty(t, ask[contract.CalibrationReport](w, "root", http.MethodGet, "/v1/reports/calibration", "").Sources,
		"nothing is closed")
	w.clock.Advance(time.Hour)
	ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts/outcomes", w.encodeBody(outcomes))

	got := ask[contract.CalibrationReport](w, "root", http.MethodGet, "/v1/reports/calibration?source=llm&days=1", "")
	require.Equal(t, w.clock.Now().Add(-24*time.Hour), got.From)
	require.NotEmpty(t, got.Definition)
	require.Len(t, got.Sources, 1)
	s := got.Sources[0]
	require.Equal(t, 4, s.N)
	require.InDelta(t, (0.01+0.0025+0.04+0.5625)/4, s.Brier, 1e-12)
	require.InDelta(t, -(math.Log(0.9)+math.Log(0.95)+math.Log(0.8)+math.Log(0.25))/4, s.LogLoss, 1e-12)
	require.Equal(t, contract.IntervalCoverage{Said: 0.8, Seen: 0.75, N: 4}, s.Interval)
	require.Equal(t, 3, s.Baseline.N)
	require.InDelta(t, 0.25, s.Baseline.Brier, 1e-12)
	require.InDelta(t, 0.0525/3, s.Baseline.SourceBrier, 1e-12)
	require.InDelta(t, 0.25-0.0175, s.Baseline.Uplift, 1e-12)
	require.InDelta(t, 0.93, *s.Baseline.Skill, 1e-12)
	require.InDelta(t, 0.5, *s.Influence, 0)
	require.Len(t, s.Bins, 10)
	require.Equal(t, 2, s.Bins[9].N)
	require.InDelta(t, 0.925, *s.Bins[9].Said, 1e-12)
	require.InDelta(t, 1, *s.Bins[9].Seen, 0)
	require.InDelta(t, 0.5, *s.Bins[2].Seen, 0)
	require.Nil(t, s.Bins[0].Said)
	w.clock.Advance(24 * time.Hour)
	require.Empty(t, ask[contract.CalibrationReport](w, "root", http.MethodGet, "/v1/reports/calibration?days=1",
		"").Sources, "it is too long ago")
}
