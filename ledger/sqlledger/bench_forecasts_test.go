package sqlledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// BenchmarkForecasts records and closes whole batches through the verbs, and reads
// among a hundred others.
func BenchmarkForecasts(b *testing.B) {
	for name, open := range benchedStores() {
		b.Run(name, func(b *testing.B) {
			store := open(b)
			saveTenantAndPool(b, store)
			book := verbs.New(store, ids.UUID{}, ledger.Config{ForecastsPerDay: 1 << 30})
			agent := ledger.Actor{KeyID: "key_1", Kind: ledger.AgentKey, OrganizationID: "org_1", Role: ledger.Member}
			var said []ledger.Forecast
			var seen []ledger.ForecastClosing
			batches := 0
			next := func() { said, seen = forecastBatch(store, b, batches); batches++ }
			record := func() {
				_, err := book.RecordForecasts(b.Context(), agent, said)
				require.NoError(b, err)
			}
			settle := func() {
				_, err := book.CloseForecasts(b.Context(), agent, seen)
				require.NoError(b, err)
			}
			for range 20 {
				next()
				record()
				settle()
			}
			b.Run("record", func(b *testing.B) { measureMedian(b, "record_forecasts_"+name, next, record) })
			b.Run("close", func(b *testing.B) {
				measureMedian(b, "close_forecasts_"+name, func() { next(); record() },
					settle)
			})
			b.Run("calibration", func(b *testing.B) {
				measureMedian(b, "calibration_"+name, func() {}, func() {
					require.NoError(b, store.Read(b.Context(), func(r ledger.Reader) error {
						found, err := r.Calibrations(agent.Scope(), ledger.CalibrationFilter{})
						require.Len(b, found, 1)
						return err
					}))
				})
			})
			b.Run("list", func(b *testing.B) {
				measureMedian(b, "list_forecasts_"+name, func() {}, func() {
					require.NoError(b, store.Read(b.Context(), func(r ledger.Reader) error {
						found, err := r.Forecasts(agent.Scope(), ledger.ForecastFilter{State: ledger.ForecastClosed},
							50)
						require.Len(b, found, 50)
						return err
					}))
				})
			})
		})
	}
}

// forecastBatch returns a full batch of forecasts of windows that are over already,
// and what came of them.
func forecastBatch(store *sqlledger.Store, tb testing.TB, n int) (
	said []ledger.Forecast, seen []ledger.ForecastClosing,
) {
	tb.Helper()
	var begin time.Time
	require.NoError(tb, store.Read(tb.Context(), func(r ledger.Reader) error {
		begin = r.Now().Add(-time.Minute)
		return nil
	}))
	for i := range ledger.MaxForecasts {
		f := ledger.Forecast{
			ID: ids.Derived(ids.Forecast, fmt.Sprint(n, i)), PoolID: "pol_1", Source: ledger.ByLLM,
			ReasonCode: "announced_work",
			IssuedAt:   begin, Start: begin, End: begin.Add(time.Second), Baseline: ledger.FractionOf(0.5),
			Said: forecast.Summary{P50: 2, P90: 4, Any: float64(i) / ledger.MaxForecasts, Mean: 2},
		}
		said, seen = append(said, f), append(seen, ledger.ForecastClosing{ID: f.ID, GPUs: i % 5, CountedAt: f.End})
	}
	return said, seen
}
