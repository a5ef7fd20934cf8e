package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

const mostRequestID = 64

// isRequestID reports whether a client's id of a request is harmless.
func isRequestID(id string) bool {
	if id == "" || len(id) > mostRequestID {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case '0' <= b && b <= '9', 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z', b == '_', b == '.', b == '-':
		default:
			return false
		}
	}
	return true
}

// logRequest gives the request an id, keeps a client's that is harmless, and logs
// the answer. Logged are patterns and ids, never headers, queries or bodies.
func (s *Server) logRequest(c *gin.Context) {
	id := c.GetHeader(contract.HeaderRequestID)
	if !isRequestID(id) {
		id = s.cfg.IDs.New(ids.Request)
	}
	c.Header(contract.HeaderRequestID, id)
	c.Request = c.Request.WithContext(obs.WithAttrs(c.Request.Context(), slog.String("request", id)))
	if inward.Inside(c.Request.Context()) {
		return // it is part of another's, whose line tells
	}
	begun := s.cfg.Clock.Now()
	c.Next()
	took, status := s.cfg.Clock.Now().Sub(begun), c.Writer.Status()
	s.cfg.Metric.Request(c.FullPath(), c.Request.Method, status, took)
	level, ctx := answerLevel(c), c.Request.Context()
	if s.cfg.Logger.Enabled(ctx, level) {
		s.cfg.Logger.LogAttrs(ctx, level, "answered", slog.String("method", c.Request.Method),
			slog.String("route", c.FullPath()), slog.Int("status", status), slog.Duration("took", took),
			slog.String("key", auth.From(ctx).KeyID), slog.String("peer", exchangeOf(c).from.String()))
	}
}

// aboutAnswers are the headers that say something of an answer, which a failure to give it must not have.
var aboutAnswers = []string{"ETag", "Location", contract.HeaderIdempotencyReplayed}

// recoverPanic answers a handler's panic and tells the log where it was.
func (s *Server) recoverPanic(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		s.cfg.Logger.ErrorContext(c.Request.Context(), "handler panicked", "panic", fmt.Sprint(v), "stack",
			string(debug.Stack()))
		if !c.Writer.Written() {
			for _, name := range aboutAnswers {
				c.Writer.Header().Del(name)
			}
			abortWith(c, problem.New(contract.CodeInternal,
				"The failure is in the server's log under this request id."))
		}
	}()
	c.Next()
}

// abortWith answers with a problem and lets nothing further run.
func abortWith(c *gin.Context, p *problem.Problem) {
	c.Abort()
	p = p.About(requestID(c), c.Request.URL.Path)
	if !refuseCall(c, p) && !refuseBefore(c, p) {
		p.Write(c.Writer)
	}
}

// requestID is the id that logRequest gave the request.
func requestID(c *gin.Context) string { return c.Writer.Header().Get(contract.HeaderRequestID) }

// contentPolicy lets the page load its own style and script and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
	"data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// safety are the headers of every answer. Nobody changes the values, which all
// answers share: Set puts another in the place, and Add a longer copy.
var safety = []struct {
	name   string
	values []string
}{
	{"Content-Security-Policy", []string{contentPolicy}},
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"X-Frame-Options", []string{"DENY"}},
	{"Referrer-Policy", []string{"no-referrer"}},
	{"Cache-Control", []string{"no-store"}},
}

func (s *Server) securityHeaders(c *gin.Context) {
	h := c.Writer.Header()
	for _, header := range safety {
		h[header.name] = header.values
	}
	if s.speaksTLS(c.Request) {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	c.Next()
}

// speaksTLS reports whether the client speaks TLS: to us, to a proxy of ours that
// says so, or because nobody is to come otherwise.
func (s *Server) speaksTLS(r *http.Request) bool {
	return s.cfg.PublicTLS || s.cfg.Proxies.Secure(r)
}

// checkHost refuses names that are not ours. A name is what rebinding needs, so
// addresses pass, which health probes use.
func (s *Server) checkHost(c *gin.Context) {
	if !s.knownHost(c.Request.Host) {
		abortWith(c, problem.New(contract.CodeHostNotAllowed, "The server does not answer under this host name.").
			Fix("Call it by address or localhost, or add the name to the server's list of hosts", ""))
	}
}

func (s *Server) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || slices.Contains(s.cfg.Hosts, "*") || slices.Contains(s.cfg.Hosts, host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

func notFound(c *gin.Context) {
	abortWith(c, problem.New(contract.CodeNotFound,
		"There is no such route.").Request("Look at the routes in /openapi.json"))
}

func methodNotAllowed(c *gin.Context) {
	abortWith(c, problem.New(contract.CodeMethodNotAllowed, "The route exists, but not for "+c.Request.Method+".").
		Request("Use one of: "+c.Writer.Header().Get("Allow")))
}
