package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// onWire serves the world on a real listener; dial opens a connection to it.
func (w *world) onWire() (dial func() *line) {
	w.t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpx.NewServer("", w.handler)
	s.Start()
	w.t.Cleanup(s.Close)
	return func() *line {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
		require.NoError(w.t, err)
		require.NoError(w.t, conn.SetDeadline(time.Now().Add(time.Minute)))
		w.t.Cleanup(func() { _ = conn.Close() })
		return &line{w.t, conn, bufio.NewReader(conn)}
	}
}

// Requests of odd shapes are answered once, and leave nothing on their connection
// that could be taken for another's request.
func TestShapesOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dial := w.onWire()
	get := func(lines ...string) string { return strings.Join(append(lines, "", ""), "\r\n") }
	smuggled := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	key := "Authorization: Bearer " + w.keys["root"]
	for name, c := range map[string]struct {
		request string
		status  int
		stays   bool // the connection
	}{
		"plain":   {get("GET /healthz HTTP/1.1", "Host: localhost"), 200, true},
		"no host": {get("GET /healthz HTTP/1.1"), 400, false},
		"two hosts": {get("GET /healthz HTTP/1.1", "Host: localhost", "Host: evil.example"), 400,
			false},
		"another host in the line": {get("GET http://evil.example/healthz HTTP/1.1", "Host: localhost"), 421, true},
		"HTTP/1.0":                 {get("GET /healthz HTTP/1.0", "Host: localhost"), 200, false},
		"HTTP/1.0 without a host":  {get("GET /healthz HTTP/1.0"), 421, false},
		"HTTP/3.0":                 {get("GET /healthz HTTP/3.0", "Host: localhost"), 505, false},
		"NUL in a header":          {get("GET /healthz HTTP/1.1", "Host: localhost", "X-A: a\x00b"), 400, false},
		"NUL in a header's name":   {get("GET /healthz HTTP/1.1", "Host: localhost", "X-\x00A: b"), 400, false},
		"space before the colon": {get("GET /healthz HTTP/1.1", "Host: localhost", "Content-Length : 5"), 400,
			false},
		"a long URL": {get("GET /"+strings.Repeat("a", 32<<10)+" HTTP/1.1", "Host: localhost"), 431,
			false},
		"a long header": {get("GET / HTTP/1.1", "Host: localhost", "X-A: "+strings.Repeat("a", 32<<10)),
			431, false},
		"TRACE":          {get("TRACE /healthz HTTP/1.1", "Host: localhost", key), 405, true},
		"CONNECT":        {get("CONNECT evil.example:443 HTTP/1.1", "Host: evil.example:443"), 421, true},
		"CONNECT to us":  {get("CONNECT localhost:443 HTTP/1.1", "Host: localhost:443"), 404, true},
		"another method": {get("BREW /healthz HTTP/1.1", "Host: localhost"), 405, true},
		"two keys":       {get("GET /v1/whoami HTTP/1.1", "Host: localhost", key, key), 400, true},
		"two lengths": {get("POST /v1/keys HTTP/1.1", "Host: localhost", "Content-Length: 0",
			"Content-Length: 5"), 400, false},
		"a signed length": {get("POST /v1/keys HTTP/1.1", "Host: localhost", "Content-Length: +5"), 400,
			false},
		"a list of codings": {get("POST /v1/keys HTTP/1.1", "Host: localhost",
			"Transfer-Encoding: gzip, chunked"), 501, false},
		"a hidden coding": {get("POST /v1/keys HTTP/1.1", "Host: localhost", "Transfer-Encoding: xchunked"),
			501, false},
		"another expectation": {get("POST /v1/keys HTTP/1.1", "Host: localhost", "Expect: 200-ok",
			"Content-Length: 5"), 417, false},
		"a length and chunks": {get("POST /v1/keys HTTP/1.1", "Host: localhost", key, "Content-Length: 5",
			"Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled, 400, false},
		"a length and chunks, free": {get("GET /healthz HTTP/1.1", "Host: localhost", "Content-Length: 5",
			"Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled, 200, false},
		"a bad chunk": {get("POST /v1/keys HTTP/1.1", "Host: localhost", key,
			"Transfer-Encoding: chunked") + "zz\r\n\r\n", 400, false},
		"trailers": {get("POST /v1/keys HTTP/1.1", "Host: localhost", key,
			"Transfer-Encoding: chunked", "Trailer: Authorization") + "2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n",
			422, false},
	} {
		l := dial()
		l.writeText(c.request)
		status, _, body := l.readAnswer()
		require.Equal(t, c.status, status, "%s: %s", name, body)
		if c.stays {
			l.writeText(smuggled)
			status, _, _ = l.readAnswer()
			require.Equal(t, 200, status, name)
			continue
		}
		require.True(t, l.isClosed(), "%s: the connection is closed, and nothing more on it is answered", name)
	}
}

// Requests that come before their turn are answered in order.
func TestPipelines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.onWire()()
	var all strings.Builder
	for range 20 {
		all.WriteString(w.requestHead(http.MethodGet, "/v1/whoami") +
			"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	l.writeText(all.String())
	for range 20 {
		status, _, _ := l.readAnswer()
		require.Equal(t, 200, status)
		status, _, _ = l.readAnswer()
		require.Equal(t, 404, status)
	}
}

// A client that asks before it sends a body is told no before it has sent it.
func TestBodiesAreAskedForOnceTheKeyIsGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dial, body := w.onWire(), `{"name":"n","kind":"person","role":"viewer"}`
	expect := []string{"Expect: 100-continue", "Content-Type: application/json",
		fmt.Sprintf("Content-Length: %d", len(body))}
	good := dial()
	good.writeText(w.requestHead(http.MethodPost, "/v1/keys", expect...))
	text, err := good.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", text)
	_, err = good.in.ReadString('\n')
	require.NoError(t, err)
	good.writeText(body)
	status, _, _ := good.readAnswer()
	require.Equal(t, 201, status)

	w.keys["root"] = "nonsense"
	wrong := dial()
	wrong.writeText(w.requestHead(http.MethodPost, "/v1/keys", expect...))
	status, _, _ = wrong.readAnswer()
	require.Equal(t, 401, status, "and not 100 before it")
	_, err = wrong.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}
