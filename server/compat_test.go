package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// newOldWorld serves the routes of older schedulers, which are in no description of ours.
func newOldWorld(t *testing.T, change ...func(*server.Config)) *world {
	t.Helper()
	w := newWorld(t, append(change, func(c *server.Config) { c.Compat = true })...)
	w.handler = w.server
	return w
}

func TestOldRoutesAreServedWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	require.Equal(t, 200, newOldWorld(t).send("root", http.MethodGet, "/api/v1/tasks", "").Code)
	require.Equal(t, 404, newWorld(t).send("root", http.MethodGet, "/api/v1/tasks", "").Code)
}

// Every old route has a policy, and refuses whom that does not allow.
func TestEveryOldRouteRefuses(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	w.createKey("viewer", "viewer")
	w.createAgentKey("agent")
	for _, route := range w.server.Routes() {
		if !strings.Contains(route, " /api/") && !strings.Contains(route, " /gpu/") && !strings.Contains(route, " /queue/") {
			continue
		}
		policy, known := w.server.Policies()[route]
		require.True(t, known, route)
		method, path, _ := strings.Cut(route, " ")
		if policy.Public {
			require.Equal(t, "GET /api/v1/health", route, "nothing else is public")
			continue
		}
		require.Equal(t, contract.CodeUnauthenticated, w.refuse("", method, path, "").Code, route)
		require.Equal(t, contract.CodePermissionDenied, w.refuse("agent", method, path, "").Code, route)
		if policy.Role != auth.Viewer.Role {
			require.Equal(t, contract.CodePermissionDenied, w.refuse("viewer", method, path, "").Code, route)
		}
	}
}

// One request counts once, whatever the route asks the API for it, and is one line of the log.
func TestOldRoutesAreCountedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newOldWorld(t, func(c *server.Config) {
		c.Limits.Reads = auth.Rate{PerSecond: 0.001, Burst: 2}
		c.Logger = obs.NewLogger(&log, obs.Config{Level: slog.LevelDebug}) // which tells of each request
	})
	for range 2 {
		require.Equal(t, 200, w.send("root", http.MethodGet, "/api/v1/cluster/status", "").Code)
	}
	require.Equal(t, contract.CodeRateLimited, w.refuse("root", http.MethodGet, "/api/v1/cluster/status", "").Code)
	require.Equal(t, 3, strings.Count(log.String(), "route=/api/v1/cluster/status"))
	require.NotContains(t, log.String(), "route=/v1/jobs")
}

// A client cannot send what makes its request one from inside.
func TestNobodyOutsideIsInside(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	for _, body := range []string{`{"priority":"high"`, `[]`, `null`, `"x"`, `{"priority":"high","priority":"low"}`} {
		p := w.refuse("root", http.MethodPost, "/api/v1/tasks", body)
		require.Contains(t, []string{contract.CodeMalformedJSON, contract.CodeValidationFailed}, p.Code, body)
	}
	require.Equal(t, 404, w.send("root", http.MethodGet, "/api/v1/tasks/..%2fpools", "").Code)
	require.Equal(t, 404, w.send("root", http.MethodGet, "/api/v1/jobs/x%2fcancel", "").Code)
	require.Equal(t, 404, w.send("root", http.MethodDelete, "/api/v1/jobs/x%3fall=true", "").Code)
}

// Trap f: submissions at the edge of a quota, all at once, are no more than it allows.
func TestLeasesAtOnceStayWithinTheQuota(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	w.createPool()
	w.createTenant("other") // may hold 8
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range 20 {
		wait.Go(func() {
			code := w.send("other", http.MethodPost, "/api/gpuscheduler/v1/allocate", `{"gpu_model":"a100-80g"}`).Code
			mu.Lock()
			got[code]++
			mu.Unlock()
		})
	}
	wait.Wait()
	require.Equal(t, map[int]int{202: 8, 429: 12}, got)
}

// What a key may not see is as if it were not there, whichever of the old systems asks.
func TestTasksOfATenantThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	mine, third := w.createTenant("other").ID, w.createTenant("third").ID
	require.Equal(t, 200, w.send("other", http.MethodGet, "/api/tenants/"+mine, "").Code)
	for _, id := range []string{third, "org_unknown", "nobody"} {
		for _, path := range []string{"/api/tenants/", "/api/v1/tenants/"} {
			require.Equal(t, 404, w.send("other", http.MethodGet, path+id, "").Code, path+id)
		}
	}
	require.Equal(t, 200, w.send("root", http.MethodGet, "/api/tenants/"+mine, "").Code)
}
