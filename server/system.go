package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forewarm/forewarm/ledger"
)

// system adds what is not part of the API: health, metrics and the API's own
// description.
func (s *Server) system() {
	s.engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	s.engine.GET("/readyz", s.ready)
	metrics := promhttp.HandlerFor(s.cfg.Gather, promhttp.HandlerOpts{})
	s.engine.GET("/metrics", gin.WrapH(metrics))
	s.engine.GET("/openapi.json", s.openAPIJSON)
	s.engine.GET("/openapi.yaml", s.openAPIYAML)
	s.engine.GET("/docs", s.docs)
}

// maxLag is how late the oldest due task may be before this instance says that
// it is not ready: work is not being done.
const maxLag = time.Minute

// ready reports whether the store answers and due work is being sent out.
func (s *Server) ready(c *gin.Context) {
	store := s.cfg.Ledger.Store()
	if err := store.Ping(c.Request.Context()); err != nil {
		s.cfg.Logger.WarnContext(c.Request.Context(), "not ready", "error", err)
		c.String(http.StatusServiceUnavailable, "the store does not answer\n")
		return
	}
	var lag time.Duration
	err := store.Read(c.Request.Context(), func(r ledger.Reader) error {
		next, err := r.NextTask()
		if err == nil && !next.IsZero() {
			lag = r.Now().Sub(next)
		}
		return err
	})
	switch {
	case err != nil:
		s.cfg.Logger.WarnContext(c.Request.Context(), "not ready", "error", err)
		c.String(http.StatusServiceUnavailable, "the store does not answer\n")
	case lag > maxLag:
		c.String(http.StatusServiceUnavailable, "due work waits since %s\n", lag.Round(time.Second))
	default:
		c.String(http.StatusOK, "ready\n")
	}
}
