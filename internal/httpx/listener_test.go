package httpx_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// served listens with bounds and answers everything; dial opens a connection and
// returns it with the status of its first answer.
func served(t *testing.T, limits httpx.ConnLimits, proxies httpx.Proxies) (dial func() (net.Conn, int)) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := httpx.NewServer("", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(httpx.LimitConnections(l, limits, proxies)) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return func() (net.Conn, int) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
		dial := served(t, c.limits, c.proxies)
		first, status := dial()
		require.Equal(t, 200, status, name)
		for range 2 {
			_, status = dial()
			require.Equal(t, 200, status, name)
		}
		_, status = dial()
		require.Equal(t, c.bound, status != 200, name)
		require.NoError(t, first.Close())
		require.Eventually(t, func() bool { _, status := dial(); return status == 200 }, 5*time.Second, time.Millisecond, "%s: there is a place again", name)
	}
}
