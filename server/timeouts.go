package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/server/api"
)

// Timeouts bound how long a request holds its connection. They are measured by
// the machine's clock. A zero field gets the default.
type Timeouts struct {
	// Answer counts from the last byte of a request to its answer; a wait that the
	// route grants adds to it; default 15 s.
	Answer  time.Duration
	Body    time.Duration // until a body must have begun to come at BodyRate; default 5 s
	Longest time.Duration // of a whole body, at whatever rate; default 60 s
	Send    time.Duration // for an answer, or one part of a stream, to be taken; default 30 s
	// BodyRate is the slowest that a body may come after the first Body, in bytes
	// a second; default 16 KiB.
	BodyRate int
}

func (t Timeouts) withDefaults() Timeouts {
	def := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	def(&t.Answer, 15*time.Second)
	def(&t.Body, 5*time.Second)
	def(&t.Longest, time.Minute)
	def(&t.Send, 30*time.Second)
	if t.BodyRate == 0 {
		t.BodyRate = 16 << 10
	}
	return t
}

// bodyDue is when the next byte of a body must be there, if so many have come.
func (t Timeouts) bodyDue(begun time.Time, read int64) time.Time {
	late := begun.Add(t.Body + time.Duration(float64(read)/float64(t.BodyRate)*float64(time.Second)))
	if last := begun.Add(t.Longest); last.Before(late) {
		return last
	}
	return late
}

// guardConnection bounds how long the client may take to send a body, also one
// that no handler reads: net/http reads it to its end before the connection's
// next request. And it keeps everybody else from setting a read deadline: one
// that is still set when the body has ended, ends the connection's context in
// the middle of the answer, and every later request on it.
func (s *Server) guardConnection(c *gin.Context) {
	conn := http.NewResponseController(c.Writer)
	now := time.Now() //nolint:forbidigo // a socket's deadlines are the machine's
	if c.Request.Body != nil && c.Request.Body != http.NoBody {
		_ = conn.SetReadDeadline(s.cfg.Timeouts.bodyDue(now, 0)) // a recorder of tests has none
	}
	x := &exchange{ResponseWriter: c.Writer, route: s.byRoute.find(c), from: s.cfg.Proxies.Client(c.Request)}
	if x.route.Waits {
		x.wait = api.Wait(c.GetHeader("Prefer"))
	}
	_ = conn.SetWriteDeadline(now.Add(s.cfg.Timeouts.Answer + x.wait + s.cfg.Timeouts.Longest + s.cfg.Timeouts.Send))
	if len(c.Request.TransferEncoding) > 0 {
		// A Content-Length beside it was dropped. Where a proxy went by that one,
		// what follows is not the next request of the client it seems to be of.
		c.Header("Connection", "close")
	}
	c.Writer = x
	c.Next()
}

// pacedBody is a body that must come at a rate.
type pacedBody struct {
	body  io.Reader
	conn  *http.ResponseController
	limit Timeouts
	begun time.Time
	read  int64
}

// Read implements io.Reader. A body that comes too slowly ends with
// os.ErrDeadlineExceeded.
func (b *pacedBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(b.limit.bodyDue(b.begun, b.read))
	n, err := b.body.Read(p)
	b.read += int64(n)
	return n, err
}

// pacedBodyOf returns the request's body, to be read at a rate, and what clears its
// deadline once it was read to its end.
func (s *Server) pacedBodyOf(c *gin.Context) (io.Reader, func()) {
	conn := http.NewResponseController(exchangeOf(c).ResponseWriter)
	body := &pacedBody{body: c.Request.Body, conn: conn, limit: s.cfg.Timeouts,
		begun: time.Now()} //nolint:forbidigo // a socket's deadlines are the machine's
	return body, func() { _ = conn.SetReadDeadline(time.Time{}) }
}

// boundAnswer bounds everything but streams, which live as long as their client. It
// counts from the end of the body, whose time is bounded apart.
func (s *Server) boundAnswer(c *gin.Context) {
	x := exchangeOf(c)
	if x.route.Streams {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.Timeouts.Answer+x.wait)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}
