package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// pepperVariable is one that all processes of a test share.
var pepperVariable = "FOREWARM_PEPPER=1:" + strings.Repeat("5a", 32)

// probeServer asks an address without a key; 0: nobody is there.
func probeServer(t *testing.T, address, path string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	resp, err := httpx.NewClient(httpx.Config{Timeout: ending}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(body)
}

// unusedServices are services on ports that nobody listens on.
func unusedServices(t *testing.T) []string {
	t.Helper()
	return []string{
		"FOREWARM_DATABASE=postgres://someone:hunter2@" + freePort(t) + "/forewarm?sslmode=disable",
		"FOREWARM_REDIS=redis://someone:hunter2@" + freePort(t) + "/0", pepperVariable,
	}
}

// A start without its database waits: it lives, says what is missing, and ends as
// soon as it is told to.
func TestAStartWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	for command, variable := range map[string]string{"server": "FOREWARM_LISTEN", "worker": "FOREWARM_METRICS_LISTEN"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			h, address := newHome(t), freePort(t)
			p := h.start(t, append(unusedServices(t), variable+"="+address), command, "--data-dir", h.dataDir())
			eventually(t, patience, func() string {
				code, text := probeServer(t, address, "/readyz")
				if code != http.StatusServiceUnavailable ||
					!strings.Contains(text, "waiting for the database at postgres://127.0.0.1:") {
					return text
				}
				require.NotContains(t, text, "hunter2")
				return ""
			})
			code, text := probeServer(t, address, "/healthz")
			require.Equal(t, http.StatusOK, code, text)
			code, text = probeServer(t, address, "/v1/pools")
			require.Equal(t, http.StatusServiceUnavailable, code)
			require.Contains(t, text, "store-unavailable")
			require.Zero(t, p.stop(t, ending), p.errors.String())
			said := p.errors.String()
			require.Equal(t, 1, strings.Count(said, "waiting for the database"), said)
			require.NotContains(t, said, "hunter2")
		})
	}
}

// Who does not want to wait for ever says so.
func TestAStartWaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"server", "worker", "migrate"} {
		h := newHome(t)
		p := h.start(t, append(unusedServices(t), "FOREWARM_LISTEN=127.0.0.1:0"), command, "--data-dir", h.dataDir(),
			"--wait-for-database", "0s")
		require.Equal(t, 1, p.wait(t, patience), command)
		said := p.errors.String()
		require.Contains(t, said, "the database at postgres://127.0.0.1:", command)
		require.Contains(t, said, "cannot be reached", command)
		require.NotContains(t, said, "forewarm up", command)
		require.NotContains(t, said, "hunter2", command)
	}
	h := newHome(t)
	migrate := h.start(t, unusedServices(t), "migrate", "--data-dir", h.dataDir())
	eventually(t, patience, func() string {
		if _, err := os.Stat(h.dataDir()); err != nil { // the first thing it makes
			return err.Error()
		}
		return ""
	})
	require.Equal(t, 143, migrate.stop(t, ending), "what it was asked for is not done")
}

// What shares a database refuses to make a pepper of its own.
func TestAPepperIsNotMadeBesideASharedDatabase(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"server", "worker", "migrate"} {
		h := newHome(t)
		p := h.start(t, unusedServices(t)[:2], command, "--data-dir", h.dataDir())
		require.Equal(t, 1, p.wait(t, patience), command)
		require.Contains(t, p.errors.String(), "FOREWARM_PEPPER is not set", command)
		require.Contains(t, p.errors.String(), "openssl rand -hex 32", command)
		require.NoFileExists(t, h.dataDir()+"/pepper")
	}
}

// A URL that cannot be read is told at once, and never with the password.
func TestAURLThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	good := unusedServices(t)
	for variable, urls := range map[string][]string{
		"FOREWARM_DATABASE": {
			"mysql://u:hunter2@db/x", "postgres//u:hunter2@db/x", "postgres://u:hunter2@db:port/x",
			"postgres://u:hunter2%zz@db/x", "postgres://u:hunter2/x@db/x",
			"postgres://u:hunter2@db/x?sslmode=hunter2", "postgres://u:hunter2@db/x?connect_timeout=hunter2",
		},
		"FOREWARM_REDIS": {"http://u:hunter2@r", "redis://u:hunter2@r:port/0", "redis://u:hunter2@r/x",
			"redis://u:hunter2%zz@r/0"},
	} {
		for _, url := range urls {
			h := newHome(t)
			p := h.start(t, append(good, variable+"="+url), "worker", "--data-dir", h.dataDir())
			code := p.wait(t, patience)
			require.True(t, code == 1 || code == 2, "%s: %d", url, code)
			said := p.errors.String()
			require.Contains(t, said, "URL", url)
			require.NotContains(t, said, "hunter2", url)
		}
	}
}

// A server's own address for metrics answers without its database; a taken one is
// told with the setting that changes it.
func TestAServerShowsMetricsWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	h, metrics := newHome(t), freePort(t)
	env := append(unusedServices(t), "FOREWARM_LISTEN="+freePort(t), "FOREWARM_SERVER_METRICS_LISTEN="+metrics)
	p := h.start(t, env, "server", "--data-dir", h.dataDir())
	eventually(t, patience, func() string {
		if code, text := probeServer(t, metrics, "/healthz"); code != http.StatusOK {
			return text
		}
		return ""
	})
	second := h.start(t, append(unusedServices(t), "FOREWARM_METRICS_LISTEN="+metrics), "worker", "--data-dir",
		h.dataDir()+"-worker")
	require.Equal(t, 1, second.wait(t, patience))
	require.Contains(t, second.errors.String(), "metrics_listen")
	require.NotContains(t, second.errors.String(), "--listen")
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// A pool of a provisioner that is not there stops every process that reads it.
func TestAPoolOfNoProvisionerStopsEveryProcess(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"migrate", "server", "worker", "up"} {
		h := newHome(t)
		h.writeConfig(t,
			fmt.Sprintf("data_dir: %s\nlisten: 127.0.0.1:0\nprovisioners: [{kind: sim, config: {name: sim}}]\n"+
				"pools: [{name: lab, provisioner: sin, instance_type: x, max_nodes: 1}]\n", h.dataDir()))
		env := []string{pepperVariable}
		if command == "server" || command == "worker" {
			env = append(env, "FOREWARM_DATABASE=sqlite://"+h.dataDir()+"/forewarm.db",
				"FOREWARM_REDIS=redis://"+freePort(t)+"/0")
		}
		p := h.start(t, env, command, "--config", h.configFile())
		require.NotZero(t, p.wait(t, patience), command)
		require.Contains(t, p.errors.String(), `there is no provisioner "sin"`, command)
	}
}
