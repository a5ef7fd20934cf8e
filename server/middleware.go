package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

var requestIDs = regexp.MustCompile(`^[0-9A-Za-z_.-]{1,64}$`)

// logRequest gives the request an id, keeps a client's that is harmless, and logs
// the answer. Logged are patterns and ids, never headers, queries or bodies.
func (s *Server) logRequest(c *gin.Context) {
	id := c.GetHeader(contract.HeaderRequestID)
	if !requestIDs.MatchString(id) {
		id = s.cfg.IDs.New(ids.Request)
	}
	c.Header(contract.HeaderRequestID, id)
	c.Request = c.Request.WithContext(obs.WithAttrs(c.Request.Context(), slog.String("request", id)))
	begun := s.cfg.Clock.Now()
	c.Next()
	took, status := s.cfg.Clock.Now().Sub(begun), c.Writer.Status()
	s.cfg.Metric.Request(c.FullPath(), c.Request.Method, status, took)
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.cfg.Logger.Log(c.Request.Context(), level, "answered", "method", c.Request.Method, "route", c.FullPath(),
		"status", status, "took", took, "key", auth.From(c.Request.Context()).KeyID, "peer",
		s.cfg.Proxies.Client(c.Request).String())
}

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
			abortWith(c, problem.New(contract.CodeInternal,
				"The failure is in the server's log under this request id."))
		}
	}()
	c.Next()
}

// abortWith answers with a problem and lets nothing further run.
func abortWith(c *gin.Context, p *problem.Problem) {
	c.Abort()
	p.About(c.Writer.Header().Get(contract.HeaderRequestID), c.Request.URL.Path).Write(c.Writer)
}

// contentPolicy lets the page load its own style and script and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
	"data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

func (s *Server) securityHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
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
