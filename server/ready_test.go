package server_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// inFile is a world over a file, and another connection to it.
func inFile(t *testing.T, change ...func(*server.Config)) (*world, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forewarm.db")
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://" + path, Clock: clock.NewManual(begin)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	change = append(change, func(c *server.Config) { c.Ledger = verbs.New(store, &ids.Sequence{}, ledger.Config{}) })
	w := newWorld(t, change...)
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	other.SetMaxOpenConns(1)
	return w, other
}

// TestReadyMeansThatItCanWrite: a database that answers and takes no writes is
// of no use; and a look answers for a second.
func TestReadyMeansThatItCanWrite(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	w, other := inFile(t, func(c *server.Config) { c.Metric, c.Gather, c.OpenMetrics = metrics, registry, true })
	look := func(code int, text, gauge string) {
		t.Helper()
		out := w.send("", http.MethodGet, "/readyz", "")
		require.Equal(t, code, out.Code, out.Body.String())
		require.Contains(t, out.Body.String(), text)
		require.Contains(t, w.send("", http.MethodGet, "/metrics", "").Body.String(), "forewarm_ready "+gauge)
	}
	look(200, "ready", "1")
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE") // a process that stops in the middle of a write
	require.NoError(t, err)
	look(200, "ready", "1")
	w.clock.Advance(time.Second)
	look(503, "the database does not accept writes: ", "0")
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	look(503, "the database does not accept writes: ", "0")
	w.clock.Advance(time.Second)
	look(200, "ready", "1")

	_, err = other.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
	require.NoError(t, err)
	w.clock.Advance(time.Second)
	look(503, "schema 99999 and this program needs ", "0")
	require.Equal(t, 200, w.send("", http.MethodGet, "/healthz", "").Code)
}

// TestTheJournalIsVerified: by an operator, in pages, against a seal that was kept.
func TestTheJournalIsVerified(t *testing.T) {
	t.Parallel()
	seals := ledger.NewSealKey([]byte("a key of thirty-two bytes or more"))
	var l *verbs.Ledger
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), &ids.UUID{}, ledger.Config{Seals: seals})
		l = c.Ledger
	})
	for i := range 3 {
		w.createKey(fmt.Sprint("someone", i), "viewer") // an event
		w.clock.Advance(time.Minute)
		sealJournal(t, l)
	}
	first := ask[contract.AuditPage](w, "root", http.MethodGet, "/v1/audit/verify?limit=2", "")
	require.True(t, first.More)
	require.Equal(t, 2, first.Seals)
	rest := ask[contract.AuditPage](w, "root", http.MethodGet,
		"/v1/audit/verify?after="+first.LastSeal+"&anchor="+first.LastSeal, "")
	require.False(t, rest.More)
	require.Nil(t, rest.Finding)
	require.Equal(t, int64(3), rest.NewestSeal)
	wrong := "3:" + first.LastSeal[2:]
	other := ask[contract.AuditPage](w, "root", http.MethodGet, "/v1/audit/verify?anchor="+wrong, "")
	require.Equal(t, ledger.AuditAnchor, other.Finding.Kind)
	require.Equal(t, contract.CodeInvalidParameter,
		w.refuse("root", http.MethodGet, "/v1/audit/verify?anchor=seven", "").Code)
	require.Equal(t, contract.CodePermissionDenied, w.refuse("someone0", http.MethodGet, "/v1/audit/verify", "").Code)
	require.Equal(t, contract.CodeStateConflict, newWorld(t).refuse("root", http.MethodGet, "/v1/audit/verify",
		"").Code, "it has no key for seals")
}

// sealJournal runs the task that seals.
func sealJournal(t *testing.T, l *verbs.Ledger) {
	t.Helper()
	require.NoError(t, l.EnsureSweep(t.Context(), "sim"))
	for {
		tasks, err := l.Dispatch(t.Context(), 100, 0)
		require.NoError(t, err)
		for _, task := range tasks {
			if task.Kind != ledger.TaskSeal {
				continue
			}
			claimed, err := l.ClaimTask(t.Context(), task.ID, task.Attempt, time.Minute)
			require.NoError(t, err)
			_, err = l.SealJournal(t.Context(), ledger.Guard{TaskID: claimed.ID, Fence: claimed.Fence})
			require.NoError(t, err)
			return
		}
	}
}
