//go:build services

package main_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newLatePort is a service's URL at an address where nobody listens yet; come lets the
// service be found there.
func newLatePort(t *testing.T, service string) (address string, come func()) {
	t.Helper()
	parsed, err := url.Parse(service)
	require.NoError(t, err)
	real, door := parsed.Host, freePort(t)
	parsed.Host = door
	return parsed.String(), func() {
		l, err := net.Listen("tcp", door)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go joinConnections(conn, real)
			}
		}()
	}
}

// joinConnections passes on what both sides say, until one ends.
func joinConnections(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	end := sync.OnceFunc(func() { _, _ = client.Close(), server.Close() })
	go func() { defer end(); _, _ = io.Copy(server, client) }()
	defer end()
	_, _ = io.Copy(client, server)
}

// untilReady waits until a process answers what it serves once it works.
func untilReady(t *testing.T, address, path string) {
	t.Helper()
	eventually(t, patience, func() string {
		if code, text := probeServer(t, address, path); code != http.StatusOK {
			return text
		}
		return ""
	})
}

// Server and worker that start before PostgreSQL work once it comes, and Redis is
// not waited for.
func TestAStartFindsItsServicesLate(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	database := newPostgres(t)
	redisURL, _ := newRedis(t)
	migrate :=
		h.start(t, []string{"FOREWARM_DATABASE=" + database, pepperVariable}, "migrate", "--config", h.configFile())
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())

	lateDatabase, databaseComes := newLatePort(t, database)
	lateRedis, redisComes := newLatePort(t, redisURL)
	api, metrics := freePort(t), freePort(t)
	env := []string{"FOREWARM_DATABASE=" + lateDatabase, "FOREWARM_REDIS=" + lateRedis, "FOREWARM_LISTEN=" + api,
		pepperVariable}
	server := h.start(t, env, "server", "--config", h.configFile())
	worker := h.start(t, append(env, "FOREWARM_METRICS_LISTEN="+metrics), "worker", "--config", h.configFile())
	waits := func(address, what string) {
		eventually(t, patience, func() string {
			if code, text := probeServer(t, address, "/readyz"); code != http.StatusServiceUnavailable ||
				!strings.Contains(text, "waiting for "+what) {
				return text
			}
			return ""
		})
	}
	waits(api, "the database")
	waits(metrics, "the database")
	databaseComes()
	untilReady(t, api, "/readyz")
	eventually(t, patience, func() string {
		code, text := probeServer(t, metrics, "/readyz")
		if code != http.StatusOK || !strings.Contains(text, "due work is done straight from the database") {
			return text
		}
		return ""
	})
	redisComes()
	eventually(t, patience, func() string {
		if _, text := probeServer(t, metrics, "/readyz"); text != "ready\n" {
			return text
		}
		return ""
	})
	require.Zero(t, worker.stop(t, ending), worker.errors.String())
	require.Zero(t, server.stop(t, ending), server.errors.String())
	require.Contains(t, worker.errors.String(), "does not answer: due work is done straight from the database")
	require.NotContains(t, worker.errors.String()+server.errors.String(), "password=")
}

// What PostgreSQL or Redis answers is final: nobody waits for another answer.
func TestAStartEndsAtADefiniteError(t *testing.T) {
	t.Parallel()
	database := newPostgres(t)
	redisURL, _ := newRedis(t)
	changed := func(address string, change func(*url.URL)) string {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		change(parsed)
		return parsed.String()
	}
	wrong := func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") }
	other := changed(database, func(u *url.URL) { u.Path = "/no_such_database" })
	h := newHome(t)
	for _, c := range []struct{ command, database, redis, says string }{
		{"server", changed(database, wrong), redisURL, "password authentication failed"},
		{"worker", changed(database, wrong), redisURL, "password authentication failed"},
		{"migrate", changed(database, wrong), redisURL, "password authentication failed"},
		{"server", other, redisURL, "does not exist"},
		{"worker", other, redisURL, "does not exist"},
		{"server", database, redisURL, "run forewarm migrate"},
		{"worker", database, redisURL, "run forewarm migrate"},
		{"migrate", database, redisURL, ""},
		{"worker", database, changed(redisURL, wrong), "WRONGPASS"},
		{"server", database, changed(redisURL, wrong), "WRONGPASS"},
		{"worker", database, changed(redisURL, func(u *url.URL) { u.Path = "/99" }), "out of range"},
		{"server", database, changed(redisURL, func(u *url.URL) { u.Path = "/99" }), "out of range"},
	} {
		env := []string{"FOREWARM_DATABASE=" + c.database, "FOREWARM_REDIS=" + c.redis, "FOREWARM_LISTEN=127.0.0.1:0",
			pepperVariable}
		p := h.start(t, env, c.command, "--data-dir", h.dataDir())
		code := p.wait(t, patience)
		said := p.errors.String()
		require.Equal(t, c.says != "", code == 1, "%s: %d %s", c.command, code, said)
		require.Contains(t, said, c.says, c.command)
		require.NotContains(t, said, "hunter2", c.command)
		require.NotContains(t, said, "waiting for", c.command)
		require.NotContains(t, said, "forewarm up", c.command)
	}
}
