package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// What the real router refuses, the outbox understands: it drops that and
// delivers the rest.
func TestTheOutboxUnderstandsTheRouter(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context(), monday, Options{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	own, err := w.newTenant(t.Context(), 0, "lab", 10)
	require.NoError(t, err)
	org, err := w.ledger.CreateOrganization(t.Context(), ledger.SystemActor("test"), "lab",
		quota.Limits{GPUs: 8, SpeculationPerDay: money.USD})
	require.NoError(t, err)
	control, err := w.keyFor(t.Context(), ledger.Key{OrganizationID: org.ID, Name: "agent", Kind: ledger.AgentKey,
		Role: ledger.Member, Caps: quota.Caps{
			MaxGPUs: 8, MaxPerDay: money.USD, MaxLead: 24 * time.Hour, MaxWindow: 24 * time.Hour,
		}})
	require.NoError(t, err)

	rows := predict.Rows{PoolID: own.poolID, Secret: []byte("secret")}
	entry := func(id string, start time.Time) contract.AgentForecast {
		return rows.Forecast(predict.Entry{ID: id, Source: predict.Statistics, Reason: predict.Recurring,
			Issued: start.Add(-time.Minute), Start: start, End: start.Add(time.Minute)})
	}
	soon := monday.Add(time.Minute)
	gone := entry("of a pool that is gone", soon)
	gone.PoolID = "pol_00000000000000000000000000"
	var o outbox.Outbox
	for _, f := range []contract.AgentForecast{entry("good", soon),
		entry("too late by the other clock", monday.Add(-3*time.Minute)), gone, entry("good too", soon)} {
		o.Forecast(f)
		o.Outcome(contract.AgentOutcome{ID: f.ID, GPUs: 2, CountedAt: soon.Add(time.Minute)})
	}
	dropped, err := o.Send(t.Context(), monday.Add(-2*time.Minute), control) // its own clock is slow
	require.NoError(t, err)
	require.Equal(t, 4, dropped, "two, with their outcomes")
	require.Equal(t, 2, o.Len())
	w.clock.Set(monday.Add(3 * time.Minute))
	_, err = o.Send(t.Context(), w.clock.Now(), control)
	require.NoError(t, err)
	require.Zero(t, o.Len())
	known := 0
	for f, err := range control.Forecasts(t.Context(), client.ForecastFilter{State: "closed"}) {
		require.NoError(t, err)
		require.Equal(t, 2, f.Outcome.GPUs)
		known++
	}
	require.Equal(t, 2, known)
}
