//go:build services

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// apiServer is one server of several, with a client of its own.
type apiServer struct {
	*process
	api     *client.Client
	metrics string // the address of its metrics
}

// newInstallation migrates a database of its own, and returns what the environment of
// its processes is, and the operator's key.
func newInstallation(t *testing.T) (h home, env []string, key string) {
	t.Helper()
	h = newHome(t)
	h.writeCloud(t)
	redisURL, _ := newRedis(t)
	env = []string{"FOREWARM_DATABASE=" + newPostgres(t), "FOREWARM_REDIS=" + redisURL,
		"FOREWARM_PEPPER=1:" + strings.Repeat("5a", 32)}
	migrate := h.start(t, env, "migrate", "--config", h.configFile())
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	return h, env, strings.TrimSpace(migrate.output())
}

// startServers starts servers of one installation, one after the other.
func startServers(t *testing.T, n int) []apiServer {
	t.Helper()
	h, env, key := newInstallation(t)
	all := make([]apiServer, n)
	for i := range all {
		s := apiServer{metrics: freePort(t)}
		address := freePort(t)
		_, s.api = openDoor(t, "http://"+address, key)
		s.process = h.start(t, append(env, "FOREWARM_LISTEN="+address, "FOREWARM_SERVER_METRICS_LISTEN="+s.metrics),
			"server", "--config", h.configFile())
		s.awaitMetric(t, fmt.Sprintf("forewarm_server_leads %d", map[bool]int{true: 1, false: 0}[i == 0]))
		all[i] = s
	}
	return all
}

// awaitMetric waits until the server shows a metric with a value.
func (s apiServer) awaitMetric(t *testing.T, line string) {
	t.Helper()
	eventually(t, patience, func() string {
		if text := s.scrape(t); !strings.Contains(text, "\n"+line+"\n") {
			return "not " + line
		}
		return ""
	})
}

// scrape is the server's metrics; empty while it has none.
func (s apiServer) scrape(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.metrics+"/metrics", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// book books one GPU for a minute of a day of its own.
func (s apiServer) book(t *testing.T, day int) {
	t.Helper()
	start := time.Now().AddDate(0, 0, day)
	_, err := s.api.Reserve(t.Context(), contract.ReservationCreate{Pool: loadPool, GPUs: 1, Start: start,
		End: start.Add(time.Minute)}, client.Options{})
	require.NoError(t, err)
}

// TestTwoServersShareTheirWork: the second has the first decide, decides itself as soon
// as the first is gone, and a server that comes later follows it.
func TestTwoServersShareTheirWork(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 3)
	first, second, third := servers[0], servers[1], servers[2]
	day := 0
	book := func(s apiServer) {
		day++
		s.book(t, day)
	}
	// On a busy machine a server may have given the first one up for a while, and decides itself.
	requireForwarding := func(s apiServer) {
		before := s.countForwarded(t)
		eventually(t, patience, func() string {
			if book(s); s.countForwarded(t) == before {
				return "it decides itself"
			}
			return ""
		})
	}
	book(first)
	requireForwarding(second)
	requireForwarding(third)
	require.Equal(t, "0", first.countForwarded(t))
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	book(second)
	book(third)
	second.awaitMetric(t, "forewarm_server_leads 1")
	requireForwarding(third)
}

// countForwarded is how many requests the server sent on that were answered.
func (s apiServer) countForwarded(t *testing.T) string {
	t.Helper()
	_, count, _ := strings.Cut(s.scrape(t), `forewarm_requests_forwarded_total{outcome="answered"} `)
	count, _, _ = strings.Cut(count, "\n")
	return count
}
