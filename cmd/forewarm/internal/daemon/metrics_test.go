package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
)

// A worker has no API beside which to show its metrics, and counts what servers
// do not see.
func TestAWorkerShowsItsMetrics(t *testing.T) {
	t.Parallel()
	cfg := defaultConfig()
	cfg.DataDir = t.TempDir()
	a, err := newApp(t.Context(), cfg, "test")
	require.NoError(t, err)
	_, _, err = a.prepareInstallation(t.Context())
	require.NoError(t, err)
	ask := func(path string) *httptest.ResponseRecorder {
		out := httptest.NewRecorder()
		a.metricsHandler(func() string { return "Redis is away" }).ServeHTTP(out,
			httptest.NewRequest(http.MethodGet, path, nil))
		return out
	}
	require.Equal(t, http.StatusOK, ask("/healthz").Code)
	require.Equal(t, "ready\nRedis is away\n", ask("/readyz").Body.String())
	text := ask("/metrics").Body.String()
	require.Contains(t, text, "forewarm_ledger_up 1")
	require.Contains(t, text, "forewarm_ready 1")
	require.Contains(t, text, `go_sql_max_open_connections{db_name="ledger"} 1`)
	require.Equal(t, http.StatusNotFound, ask("/v1/pools").Code)

	require.NoError(t, a.store.Close())
	a.clock = clock.NewManual(a.clock.Now().Add(time.Minute))
	require.Equal(t, http.StatusServiceUnavailable, ask("/readyz").Code)
	require.Contains(t, ask("/metrics").Body.String(), "forewarm_ready 0",
		"no database is needed to say that there is none")
}
