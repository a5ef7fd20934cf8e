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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// pipes is a listener whose connections live in memory, so that inside a
// synctest bubble the deadlines of connections run in virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// from is a connection that comes from an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

func (p *pipes) connect() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- from{theirs, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}}
	return ours
}

// inMemory serves the world as the program does, over connections in memory.
func (w *world) inMemory() *pipes {
	w.t.Helper()
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := httpx.NewServer("", w.handler)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(p) }()
	w.t.Cleanup(func() {
		require.NoError(w.t, srv.Close())
		require.ErrorIs(w.t, <-ended, http.ErrServerClosed)
	})
	return p
}

// line is one connection on which requests are written by hand.
type line struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) openLine(p *pipes) *line {
	w.t.Helper()
	conn := p.connect()
	w.t.Cleanup(func() { _ = conn.Close() })
	return &line{w.t, conn, bufio.NewReader(conn)}
}

// writeText sends text; that the server no longer listens shows in the answer.
func (l *line) writeText(text string) { _, _ = io.WriteString(l.conn, text) }

// readAnswer reads one answer whole.
func (l *line) readAnswer() (int, http.Header, string) {
	l.t.Helper()
	resp, err := http.ReadResponse(l.in, nil)
	require.NoError(l.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.NoError(l.t, resp.Body.Close())
	return resp.StatusCode, resp.Header, string(body)
}

// isClosed reports whether the server has closed the connection.
func (l *line) isClosed() bool {
	_, err := l.in.ReadByte()
	return err != nil
}

// requestHead is the beginning of a request of the root key.
func (w *world) requestHead(method, path string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost",
		"Authorization: Bearer " + w.keys["root"]}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func (w *world) allocateRequest(key string, headers ...string) string {
	body := `{"pool":"lab","gpus":2}`
	return w.requestHead(http.MethodPost, "/v1/allocations",
		append(headers, "Idempotency-Key: "+key, "Content-Type: application/json",
			fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

// A request that waits for half a minute gets its answer after half a minute,
// and the next one on its connection is healthy.
func TestAConnectionOutlivesAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
		w.createPool()
		l := w.openLine(w.inMemory())
		for prefer, want := range map[string]time.Duration{"wait=30": 30 * time.Second, "wait=600": 55 * time.Second} {
			begun := time.Now()
			go l.writeText(w.allocateRequest(prefer, "Prefer: "+prefer))
			status, header, body := l.readAnswer()
			require.Equal(t, 202, status, body)
			require.Contains(t, body, "pending")
			require.Equal(t, fmt.Sprintf("wait=%d", want/time.Second), header.Get("Preference-Applied"))
			require.Equal(t, want, time.Since(begun))
			go l.writeText(w.requestHead(http.MethodGet, "/v1/whoami"))
			status, _, body = l.readAnswer()
			require.Equal(t, 200, status, body)
		}
	})
}

// The same on a real connection, with a body that was nearly too slow.
func TestADeadlineOfABodyEndsWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Timeouts.Body = 2 * time.Second })
	w.createPool()
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpx.NewServer("", w.handler)
	s.Start()
	t.Cleanup(s.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	l := &line{t, conn, bufio.NewReader(conn)}
	l.writeText(w.allocateRequest("k", "Prefer: wait=3")) // longer than its body may take
	status, _, body := l.readAnswer()
	require.Equal(t, 202, status, body)
	l.writeText(w.allocateRequest("k"))
	status, header, body := l.readAnswer()
	require.Equal(t, 202, status, body)
	require.Equal(t, "true", header.Get("Idempotency-Replayed"))
}

// A body that does not come holds its connection for seconds, whoever sends it
// and whether or not anybody reads it.
func TestSlowBodiesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
		p := w.inMemory()
		for name, c := range map[string]struct {
			head   string
			status int
		}{
			"with a key":    {w.requestHead(http.MethodPost, "/v1/allocations", "Content-Length: 1000"), 408},
			"chunked":       {w.requestHead(http.MethodPost, "/v1/allocations", "Transfer-Encoding: chunked"), 408},
			"without a key": {"POST /v1/allocations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", 401},
			"no route":      {"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", 404},
			"other host":    {"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", 421},
			"sign-in": {"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: " +
				"application/x-www-form-urlencoded\r\n\r\n", 408},
			"sign-out": {"POST /logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", 408},
			"a probe":  {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", 200},
		} {
			l := w.openLine(p)
			begun := time.Now()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				l.writeText(c.head)
				for range 100 { // a byte a second
					time.Sleep(time.Second)
					l.writeText(" ")
				}
			}()
			status, _, body := l.readAnswer()
			require.Equal(t, c.status, status, "%s: %s", name, body)
			require.True(t, l.isClosed(), name)
			require.Less(t, time.Since(begun), 8*time.Second, name)
			<-sent
		}
	})
}

// A body that comes steadily is read, however large, unless it takes too long.
func TestSteadyBodiesAreRead(t *testing.T) {
	t.Parallel()
	const bodySize = 1_000_000
	for rate, want := range map[int]int{32 << 10: 422, 16 << 10: 408, 8 << 10: 408} { // bytes a second
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
			l, sent := w.openLine(w.inMemory()), make(chan struct{})
			defer func() { <-sent }()
			go func() {
				defer close(sent)
				l.writeText(w.requestHead(http.MethodPost, "/v1/allocations",
					fmt.Sprintf("Content-Length: %d", bodySize),
					"Content-Type: application/json"))
				l.writeText(`{"pool":"lab","gpus":0`)
				for left := bodySize - len(`{"pool":"lab","gpus":0}`); left > 0; left -= rate {
					l.writeText(strings.Repeat(" ", min(rate, left)))
					time.Sleep(time.Second)
				}
				l.writeText("}")
			}()
			status, _, body := l.readAnswer()
			require.Equal(t, want, status, body)
		})
	}
}

// A client that does not read its answer does not hold it for ever.
func TestAnswersThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
		l := w.openLine(w.inMemory())
		l.writeText("GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_, err := l.in.Peek(1)
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		got, err := io.ReadAll(l.in)
		require.NoError(t, err)
		require.Less(t, len(got), 100_000, "it was cut off")
	})
}

// A stream and a wait live on while nothing comes.
func TestStreamsOutliveAllDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.server.Run(ctx) }()
		defer func() { cancel(); require.NoError(t, <-done) }()
		l := w.openLine(w.inMemory())
		l.writeText(w.requestHead(http.MethodGet, "/v1/events/stream?type=pool.", "Accept: application/x-ndjson"))
		resp, err := http.ReadResponse(l.in, nil)
		require.NoError(t, err)
		lines, seen := bufio.NewScanner(resp.Body), make(chan string)
		go func() {
			for lines.Scan() {
				if lines.Text() != "" {
					seen <- lines.Text()
				}
			}
			close(seen)
		}()
		time.Sleep(time.Hour)
		w.createPool()
		require.Contains(t, <-seen, "pool.created")
		go func() {
			for range seen {
			}
		}()
	})
}

// A stream ends within five seconds of its key, whoever revoked it and wherever,
// and says why; so it does when the key may see other things.
func TestStreamsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accept, reason string
		within         time.Duration
		change         func(w *world, k contract.Key, u contract.User)
	}{
		"revoked elsewhere": {"text/event-stream", "unauthenticated", auth.CacheFor,
			func(w *world, k contract.Key, _ contract.User) {
				_, err := w.ledger.RevokeKey(w.t.Context(), rootActor(), k.ID)
				require.NoError(w.t, err)
			}},
		"revoked, as lines": {"application/x-ndjson", "unauthenticated", auth.CacheFor,
			func(w *world, k contract.Key, _ contract.User) {
				ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+k.ID, "")
			}},
		"expired": {"text/event-stream", "unauthenticated", 90 * time.Second,
			func(*world, contract.Key, contract.User) {}},
		"its person is out": {"text/event-stream", "unauthenticated", auth.CacheFor,
			func(w *world, _ contract.Key, u contract.User) {
				ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, `{"active":false}`,
					"If-Match", `"1"`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *server.Config) { c.Clock = clock.System{} })
				w.clock.Set(time.Now())
				u := ask[contract.User](w, "root", http.MethodPost, "/v1/users",
					`{"email":"ada@example.org","role":"viewer"}`)
				k := w.keepKey("ada", `{"name":"ada","kind":"person","role":"viewer","user_id":"`+u.ID+
					`","expires_in_seconds":90}`)
				last := ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?limit=500", "").Next
				w.keys["root"], w.keys["operator"] = w.keys["ada"], w.keys["root"]
				l := w.openLine(w.inMemory())
				go l.writeText(w.requestHead(http.MethodGet, fmt.Sprintf("/v1/events/stream?after=%d", last),
					"Accept: "+c.accept))
				resp, err := http.ReadResponse(l.in, nil)
				require.NoError(t, err)
				w.keys["root"] = w.keys["operator"]
				seen := make(chan string)
				go func() { text, _ := io.ReadAll(resp.Body); seen <- string(text) }()
				for range 20 { // the store's clock goes on beside the bubble's
					time.Sleep(100 * time.Millisecond)
					w.clock.Advance(100 * time.Millisecond)
				}
				begun := time.Now()
				c.change(w, k, u)
				ticking := make(chan struct{})
				go func() {
					for {
						select {
						case <-ticking:
							return
						case <-time.After(100 * time.Millisecond):
							w.clock.Advance(100 * time.Millisecond)
						}
					}
				}()
				text := <-seen
				close(ticking)
				require.LessOrEqual(t, time.Since(begun), c.within)
				require.Contains(t, text, `"type":"stream.ended"`)
				require.Contains(t, text, `"reason":"`+c.reason+`"`)
				require.Equal(t, c.accept == "text/event-stream",
					strings.Contains(text, "event: stream.ended\ndata: {"), text)
			})
		})
	}
}
