package server

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
