package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

const unfinished = "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc"

// Whoever begins requests at the address of metrics and leaves them open takes no descriptors from the process.
func TestConnectionsToMetricsAreBounded(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveMetrics(l, http.NewServeMux(), slog.New(slog.DiscardHandler))(ctx) }()
	var all []net.Conn
	for range metricsLimits.PerAddress + 1 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, unfinished)
		require.NoError(t, err)
		all = append(all, conn)
	}
	require.NoError(t, all[0].SetReadDeadline(time.Now().Add(httpx.ShortReadTimeout/2)))
	_, err = io.Copy(io.Discard, all[0])
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the oldest is closed at once")
	for _, conn := range all {
		require.NoError(t, conn.Close())
	}
	cancel()
	require.NoError(t, <-ended)
}

// pipeListener accepts one connection.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.done); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A body that never comes ends with its connection, also before the API is open.
func TestABodyThatNobodyReadsIsBounded(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Listener) actor{
		"metrics": func(l net.Listener) actor {
			return serveMetrics(l, http.NewServeMux(), slog.New(slog.DiscardHandler))
		},
		"the API of a server that waits": func(l net.Listener) actor {
			return serveHTTP(l, newFront(), slog.New(slog.DiscardHandler))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &pipeListener{conns: make(chan net.Conn, 1), done: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- serve(l)(ctx) }()
			here, there := net.Pipe()
			l.conns <- there
			begun := time.Now()
			_, err := io.WriteString(here, unfinished)
			require.NoError(t, err)
			require.NoError(t, here.SetReadDeadline(begun.Add(time.Hour)))
			_, err = io.Copy(io.Discard, here)
			require.NoError(t, err, name)
			require.LessOrEqual(t, time.Since(begun), httpx.ShortReadTimeout+time.Second, name)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}
