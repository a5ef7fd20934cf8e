package httpx_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// A request's line and header may have 16 KiB together, as is documented, and never more than 20: of a
// connection's first request net/http does not count what it reads to tell HTTP/2 apart.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := httpx.NewServer("", http.NotFoundHandler())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	for size, want := range map[int]string{16 << 10: "404", 20<<10 + 1: "431"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		text := "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: "
		_, err = io.WriteString(conn, text+strings.Repeat("a", size-len(text)-4)+"\r\n\r\n")
		require.NoError(t, err)
		answer := make([]byte, 12)
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 "+want, string(answer), size)
		require.NoError(t, conn.Close())
	}
}
