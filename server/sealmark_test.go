package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// notes is what a server remembers beside the database.
type notes struct{ ledger.SealMark }

func (n *notes) Load() (ledger.SealMark, error) { return n.SealMark, nil }
func (n *notes) Save(m ledger.SealMark)         { n.SealMark = m }
func (n *notes) Where() string                  { return "this server" }

// A seal that the server has seen and the database has not: it says so in the log,
// in a metric, in the journal, to who verifies and to who asks for recovery, until
// an operator accepts that.
func TestSealsThatAreGoneAreMissed(t *testing.T) {
	t.Parallel()
	memory, metrics := &notes{}, prometheus.NewRegistry()
	w := newWorld(t, func(c *server.Config) {
		key := ledger.NewSealKey([]byte("a key of thirty-two bytes or more"))
		c.Ledger = verbs.New(c.Ledger.Store(), &ids.UUID{}, ledger.Config{Seals: key, SealMemory: memory})
		var err error
		c.Metric, err = obs.NewMetrics(metrics)
		require.NoError(t, err)
	})
	behind := func(want float64) {
		t.Helper()
		require.NoError(t, w.server.Step(t.Context()))
		families, err := metrics.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "forewarm_journal_seals_behind" {
				require.Equal(t, want, f.GetMetric()[0].GetGauge().GetValue())
				return
			}
		}
		t.Error("no metric tells of it")
	}
	behind(0)
	require.Nil(t, ask[contract.RecoveryState](w, "root", http.MethodGet, "/v1/recovery", "").Journal)
	memory.Save(ledger.SealMark{Number: 57, MAC: strings.Repeat("ab", 32), At: w.clock.Now()})
	behind(1)
	behind(1)
	require.Contains(t, w.log.String(), "forewarm recovery confirm --journal")
	told := ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?subject=journal", "").Items
	require.Len(t, told, 1, "once")
	require.Equal(t, "journal.behind", told[0].Type)
	w.createKey("admin", "admin")
	require.Empty(t, ask[contract.EventList](w, "admin", http.MethodGet, "/v1/events?subject=journal", "").Items,
		"it is the operators'")
	gap := ask[contract.RecoveryState](w, "root", http.MethodGet, "/v1/recovery", "").Journal
	require.Contains(t, gap.Reason, "seal 57:abab")
	require.Contains(t, gap.Reason, "this server")
	require.Equal(t, ledger.AuditBehind, ask[contract.AuditPage](w, "root", http.MethodGet, "/v1/audit/verify",
		"").Finding.Kind)

	w.clock.Advance(time.Second)
	require.Equal(t, contract.CodePermissionDenied, w.refuse("admin", http.MethodPost, "/v1/recovery/journal", "").Code)
	require.Nil(t, ask[contract.RecoveryState](w, "root", http.MethodPost, "/v1/recovery/journal", "").Journal)
	behind(0)
	require.Nil(t, ask[contract.AuditPage](w, "root", http.MethodGet, "/v1/audit/verify", "").Finding)
	require.Equal(t, contract.CodeStateConflict, newWorld(t).refuse("root", http.MethodPost, "/v1/recovery/journal",
		"").Code, "it has no key for seals")
}
