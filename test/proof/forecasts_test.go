package proof_test

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
)

// wire keeps what passes.
type wire struct {
	http.RoundTripper
	sent bytes.Buffer
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.sent.WriteString(r.URL.String())
	w.sent.Write(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.RoundTripper.RoundTrip(r)
}

// TestForecastsOnTheirWay: what the agent's own ledger holds goes through its own
// door to a server, is scored there as it is here, and tells nobody's name.
func TestForecastsOnTheirWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, "sqlite://:memory:", want{servers: 1, nodes: 1, perNode: 8, quota: 8})
	key, err := s.clients[0].CreateKey(t.Context(),
		contract.KeyCreate{Name: "agent", Kind: contract.KindAgent, Role: "member", Caps: &contract.Caps{
			MaxGPUs: 1, MaxPerDay: contract.Money{Amount: "1", Currency: contract.Currency}, MaxLeadSeconds: 3600,
			MaxWindowSeconds: 3600,
		}})
	require.NoError(t, err)
	passing := &wire{RoundTripper: &http.Transport{}}
	door, err := egress.New(egress.Config{ControlPlane: s.urls[0], Ledger: filepath.Join(t.TempDir(), "egress.jsonl"),
		Transport: passing})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, door.Close()) })
	c, err := client.New(s.urls[0], key.Secret, door.ControlPlane())
	require.NoError(t, err)

	entries, outcomes, book := recordForecasts(t)
	rows := predict.Rows{PoolID: s.pool.ID, Secret: []byte("salt")}
	var said contract.AgentForecasts
	var seen contract.AgentOutcomes
	for i := range entries {
		said.Forecasts = append(said.Forecasts, rows.Forecast(entries[i]))
		seen.Outcomes = append(seen.Outcomes, rows.Outcome(outcomes[i]))
	}
	require.Positive(t, len(entries))
	for _, known := range []bool{false, true} {
		told := func(send func(control agent.ControlPlane) (contract.Recorded, error)) {
			got, err := send(c)
			require.NoError(t, err)
			require.Equal(t, map[bool]contract.Recorded{false: {New: len(entries)}, true: {Known: len(entries)}}[known],
				got)
		}
		told(func(control agent.ControlPlane) (contract.Recorded, error) {
			return control.RecordForecasts(t.Context(), said)
		})
		told(func(control agent.ControlPlane) (contract.Recorded, error) {
			return control.CloseForecasts(t.Context(), seen)
		})
	}
	report, err := s.clients[0].Calibration(t.Context(), string(predict.Statistics), 1)
	require.NoError(t, err)
	require.Len(t, report.Sources, 1)
	got, score := report.Sources[0], book.Summary().Statistics
	require.EqualValues(t, score.N, got.N)
	require.InDeltaSlice(t, []float64{score.Pinball, score.Brier, score.LogLoss, score.Inside},
		[]float64{got.MeanPinball, got.Brier, got.LogLoss, got.Interval.Seen}, 1e-9, "both sides score alike")
	for _, name := range []string{tenantName, entries[0].ID} {
		require.NotContains(t, passing.sent.String(), name)
	}
}

const tenantName = "secret-project"

// recordForecasts is what an agent foresaw a while ago, and what came of it.
func recordForecasts(t *testing.T) ([]predict.Entry, []predict.Outcome, *predict.Ledger) {
	t.Helper()
	issued := time.Now().Add(-30 * time.Second).Truncate(time.Second)
	p, err := predict.New(predict.Config{
		Series: forecast.Config{Bin: time.Second, Window: time.Second, Period: time.Minute}, Window: time.Second,
		Horizon: 20 * time.Second, MaxGPUs: 8,
	}, nil)
	require.NoError(t, err)
	for i := range 100 {
		at := issued.Add(time.Duration(3*i-300) * time.Second)
		require.NoError(t, p.Observe(issued, tenantName, at, 1+i%4, forecast.Traits{}))
	}
	require.NoError(t, p.Advance(issued))
	said := p.Predict(issued, tenantName, predict.Answer{})
	book, err := predict.OpenLedger(filepath.Join(t.TempDir(), "forecasts.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Release()) })
	var entries []predict.Entry
	for i := range said.Windows {
		entries = append(entries, said.Entry(i))
	}
	require.NoError(t, book.Append(entries...))
	n := 0
	outcomes, err := book.Close(time.Now(), func(predict.Entry) int {
		n++
		return n % 3
	})
	require.NoError(t, err)
	require.Len(t, outcomes, len(entries))
	return entries, outcomes, book
}
