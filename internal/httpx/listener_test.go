package httpx_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// startLimited listens with bounds and answers everything; dial opens a connection and
// returns it with the status of its first answer.
func startLimited(t *testing.T, limits httpx.ConnLimits, proxies httpx.Proxies) (dial func(path string) (
	net.Conn, int)) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := httpx.NewServer("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/known" || r.URL.Path == "/open" {
			httpx.Proved(r.Context())
		}
		if r.URL.Path == "/open" { // a stream: its answer goes on
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(httpx.LimitConnections(l, limits, proxies)) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return func(path string) (net.Conn, int) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer := make([]byte, 12)
		_, err = io.ReadFull(conn, answer)
		if err != nil {
			return conn, 0 // closed before the answer could be read
		}
		if string(answer) == "HTTP/1.1 200" {
			return conn, 200
		}
		return conn, 503
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	nobody := httpx.Proxies{}
	loopback, err := httpx.ParseProxies([]string{"127.0.0.0/8"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		limits  httpx.ConnLimits
		proxies httpx.Proxies
		bound   bool
	}{
		"in all":                 {httpx.ConnLimits{All: 3}, nobody, true},
		"of an address":          {httpx.ConnLimits{PerAddress: 3}, nobody, true},
		"in all, from a proxy":   {httpx.ConnLimits{All: 3}, loopback, true},
		"of an address, a proxy": {httpx.ConnLimits{PerAddress: 3}, loopback, false},
		"none":                   {httpx.ConnLimits{}, nobody, false},
	} {
		dial := startLimited(t, c.limits, c.proxies)
		first, status := dial("/open")
		require.Equal(t, 200, status, name)
		for range 2 {
			_, status = dial("/open")
			require.Equal(t, 200, status, name)
		}
		_, status = dial("/open")
		require.Equal(t, c.bound, status != 200, name)
		require.NoError(t, first.Close())
		require.Eventually(t, func() bool { _, status := dial("/open"); return status == 200 }, time.Minute,
			time.Millisecond, "%s: there is a place again", name)
	}
}

// Who holds all places without saying who they are makes room for others, the
// oldest first; who has said so keeps theirs.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]httpx.ConnLimits{"in all": {All: 4}, "of an address": {PerAddress: 4}} {
		dial := startLimited(t, limits, httpx.Proxies{})
		known, status := dial("/known")
		require.Equal(t, 200, status, name)
		first, status := dial("/")
		require.Equal(t, 200, status, name)
		for range 20 {
			_, status = dial("/")
			require.Equal(t, 200, status, name)
		}
		require.NoError(t, first.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, first) // to the end, which must come
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), name)
		_, err = io.WriteString(known, "GET /known HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.NoError(t, err, name)
		require.NoError(t, known.SetReadDeadline(time.Now().Add(time.Minute)))
		rest, err := io.ReadAll(known)
		require.NoError(t, err, name)
		require.Contains(t, string(rest), "HTTP/1.1 200 OK", "%s: the known one is still served", name)
	}
}

// Who keeps proved connections without a request on them makes room when there is
// nobody else to.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]httpx.ConnLimits{"in all": {All: 3}, "of an address": {PerAddress: 3}} {
		dial := startLimited(t, limits, httpx.Proxies{})
		_, status := dial("/open")
		require.Equal(t, 200, status, name)
		for range 10 {
			require.Eventually(t, func() bool { _, status := dial("/known"); return status == 200 }, time.Minute,
				time.Millisecond, name)
		}
		require.Eventually(t, func() bool { _, status := dial("/open"); return status == 200 }, time.Minute,
			time.Millisecond, name)
		require.Eventually(t, func() bool { _, status := dial("/open"); return status == 200 }, time.Minute,
			time.Millisecond, name)
		_, status = dial("/")
		require.NotEqual(t, 200, status, "%s: on all of them a request is open", name)
	}
}
