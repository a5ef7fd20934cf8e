package server_test

import (
	"context"
	"fmt"
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

func keyOf(name string) ledger.Key { return ledger.Key{Name: name} }

func rootActor() ledger.Actor { return ledger.SystemActor("test") }

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, 200, w.send("", http.MethodGet, "/healthz", "").Code)
	require.Equal(t, 200, w.send("", http.MethodGet, "/readyz", "").Code)
	w.createPool() // its plan is due now, and nobody works, though it is sent to a queue again and again
	send := func() []ledger.Task {
		sent, err := w.ledger.Dispatch(t.Context(), 10, 5*time.Second)
		require.NoError(t, err)
		require.NotEmpty(t, sent)
		return sent
	}
	w.clock.Advance(59 * time.Second)
	require.Equal(t, 200, w.send("", http.MethodGet, "/readyz", "").Code)
	send()
	w.clock.Advance(2 * time.Second)
	out := w.send("", http.MethodGet, "/readyz", "")
	require.Equal(t, 503, out.Code)
	require.Contains(t, out.Body.String(), "1m1s")
	w.clock.Advance(4 * time.Second)
	first := send()[0]
	_, err := w.ledger.ClaimTask(t.Context(), first.ID, first.Attempt, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, 200, w.send("", http.MethodGet, "/readyz", "").Code, "who has much to do is at work")
	require.Equal(t, 200, w.send("", http.MethodGet, "/healthz", "").Code)
}

func TestAStoreThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.ledger.Store().Close())
	require.Equal(t, 503, w.send("", http.MethodGet, "/readyz", "").Code)
	p := w.refuse("root", http.MethodGet, "/v1/pools", "")
	require.Equal(t, contract.CodeInternal, p.Code)
	require.NotContains(t, strings.ToLower(p.Detail), "sql", "what broke is for the log")
	require.Contains(t, w.log.String(), p.RequestID)
	require.Contains(t, w.log.String(), "closed")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.send("root", http.MethodGet, "/v1/whoami", "", contract.HeaderRequestID, "mine-1")
	require.Equal(t, "mine-1", out.Header().Get(contract.HeaderRequestID))
	require.Equal(t, "nosniff", out.Header().Get("X-Content-Type-Options"))
	require.Contains(t, out.Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, out.Header().Get("Content-Security-Policy"), "unsafe")
	out = w.send("root", http.MethodGet, "/v1/whoami", "", contract.HeaderRequestID, "two\nlines and spaces")
	require.Regexp(t, `^req_`, out.Header().Get(contract.HeaderRequestID))
	w.send("root", http.MethodGet, "/v1/nothing", "", contract.HeaderRequestID, "mine-2")
	require.Contains(t, w.log.String(), "mine-2")
}

// statusForHost sends a request under a host name.
func (w *world) statusForHost(name, path string) int {
	w.t.Helper()
	r, out := newRequest(http.MethodGet, path, "")
	r.Host = name
	w.handler.ServeHTTP(out, r)
	return out.Code
}

// TestTrapN is trap n: every setting of the server changes what it does. A new
// field of Config has to be named here.
func TestTrapN(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T){
		"Hosts": func(t *testing.T) {
			strict, open, any := newWorld(t), newWorld(t, func(c *server.Config) { c.Hosts = []string{"gpu.example"} }),
				newWorld(t, func(c *server.Config) { c.Hosts = []string{"*"} })
			for _, name := range []string{"localhost", "localhost:8787", "127.0.0.1", "127.0.0.1:8787", "[::1]:8787",
				"10.1.2.3"} {
				require.Equal(t, 200, strict.statusForHost(name, "/healthz"), name)
			}
			for _, name := range []string{"evil.example", "localhost.evil.example", "gpu.example", ""} {
				require.Equal(t, 421, strict.statusForHost(name, "/healthz"), name)
			}
			require.Equal(t, 200, open.statusForHost("GPU.example:443", "/healthz"))
			require.Equal(t, 421, open.statusForHost("evil.example", "/healthz"))
			require.Equal(t, 200, any.statusForHost("evil.example", "/healthz"))
		},
		"OpenMetrics": func(t *testing.T) {
			require.Equal(t, 401, newWorld(t).send("", http.MethodGet, "/metrics", "").Code)
			require.Equal(t, 200, newWorld(t).send("root", http.MethodGet, "/metrics", "").Code)
			require.Equal(t, 200, newWorld(t, func(c *server.Config) { c.OpenMetrics = true }).send("", http.MethodGet,
				"/metrics", "").Code)
		},
		"Metric": func(t *testing.T) {
			registry := prometheus.NewRegistry()
			metrics, err := obs.NewMetrics(registry)
			require.NoError(t, err)
			w := newWorld(t, func(c *server.Config) { c.Metric, c.Gather, c.OpenMetrics = metrics, registry, true })
			w.send("root", http.MethodGet, "/v1/pools/nowhere", "")
			require.Contains(t, w.send("", http.MethodGet, "/metrics", "").Body.String(),
				`forewarm_http_requests_total{method="GET",route="/v1/pools/:id",status="4xx"} 1`)
		},
		"OpenPage": func(t *testing.T) {
			require.Equal(t, 303, newWorld(t).send("", http.MethodGet, "/", "").Code)
			require.Equal(t, 200, newWorld(t, func(c *server.Config) { c.OpenPage = true }).send("", http.MethodGet,
				"/", "").Code)
		},
		"KeyLife": func(t *testing.T) {
			require.Equal(t, begin.Add(time.Hour), newWorld(t,
				func(c *server.Config) { c.KeyLife = time.Hour }).createKey("brief", "viewer").ExpiresAt)
		},
		"SignInToken": func(t *testing.T) {
			require.Equal(t, 403, newWorld(t).send("", http.MethodGet, "/login?t=once", "").Code)
			w := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
			require.Equal(t, 303, w.send("", http.MethodGet, "/login?t=once", "").Code)
		},
		"Environment": func(t *testing.T) {
			w := newWorld(t, func(c *server.Config) { c.Environment = "demo" })
			w.createKey("alice", "viewer")
			require.True(t, strings.HasPrefix(w.keys["alice"], "fw_demo_"))
		},
		"Version": func(t *testing.T) {
			w := newWorld(t, func(c *server.Config) { c.Version, c.Simulation = "7.7.7", true })
			got := ask[contract.Build](w, "root", http.MethodGet, "/v1/version", "")
			require.Equal(t, "7.7.7", got.Version)
			require.True(t, got.Simulation)
		},
		"Proxies":        TestForwardedClients,
		"PublicTLS":      TestCookiesBehindTLS,
		"PublicURL":      TestAJoinTokenSaysWhereToGo,
		"Downloads":      TestProgramsAreHandedOut,
		"OpenPerAddress": TestRequestsOfAClientAreBounded,
		"Peers":          TestAFollowerDecidesWhenNobodyReplies,
		"Streams":        TestStreamsAndWaitsAreBounded,
		"Timeouts":       TestADeadlineOfABodyEndsWithIt,
		"Limits":         TestRequestsAreLimitedByKeyAndKind,
		"Peppers":        TestKeysThatDoNotOpen,
		"Logger":         TestHeaders,
		"Clock":          TestKeysEnd,
		"NewDaemon":      TestASessionWaitsForANewDaemon,
		"Compat":         TestOldRoutesAreServedWhereTheyAreWanted,
	}
	same := map[string]string{"Gather": "Metric", "Simulation": "Version"}
	without := []string{"Ledger", "IDs", "Random"} // what it stands on, not what it does
	checkNamed(t, server.Config{}, tests, same, without)
	for name, test := range tests {
		t.Run(name, test)
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Contains(t, w.send("", http.MethodGet, "/openapi.json", "").Body.String(), `"openapi":"3.1.0"`)
	require.Contains(t, w.send("", http.MethodGet, "/openapi.yaml", "").Body.String(), "/v1/agent/plan")
	docs := w.send("", http.MethodGet, "/docs", "")
	require.Equal(t, "text/html; charset=utf-8", docs.Header().Get("Content-Type"))
	require.Contains(t, docs.Body.String(), "/v1/reservations/{id}/claim")
	require.NotContains(t, docs.Body.String(), "https://", "nothing is loaded from elsewhere")
}

func TestANewServerNeedsALedgerAndAPepper(t *testing.T) {
	t.Parallel()
	_, err := server.New(server.Config{})
	require.Error(t, err)
}

// A reader of random bytes that fails in the worst way.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("the secret of the machine") }

func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Random = panicking{} })
	p := w.refuse("root", http.MethodPost, "/v1/keys", `{"name":"n","kind":"person","role":"viewer"}`)
	require.Equal(t, contract.CodeInternal, p.Code)
	require.NotContains(t, p.Detail, "secret")
	require.Contains(t, w.log.String(), "the secret of the machine")
	require.Contains(t, w.log.String(), "keys.Mint", "the log says where")
	require.Equal(t, 200, w.send("root", http.MethodGet, "/v1/whoami", "").Code)
}

// away is a store whose database does not answer.
type away struct{ ledger.Store }

func (away) Read(context.Context, func(ledger.Reader) error) error {
	return fmt.Errorf("beginning a snapshot: %w", ledger.ErrUnavailable)
}

// A database that is away makes no request look like an attack.
func TestAMissingDatabaseIsNoFailedAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(away{c.Ledger.Store()}, &ids.Sequence{}, ledger.Config{})
	})
	p := w.refuse("root", http.MethodGet, "/v1/pools", "")
	require.Equal(t, contract.CodeUnavailable, p.Code)
	require.NotContains(t, w.log.String(), "level=ERROR")
	require.NotContains(t, w.log.String(), "authentication")
}
