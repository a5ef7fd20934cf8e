package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// registerSystem adds what is not part of the API: health, metrics and the API's own
// description.
func (s *Server) registerSystem() {
	s.engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	s.engine.GET("/readyz", gin.WrapH(s.readiness))
	s.engine.GET("/metrics", gin.WrapH(s.readiness.Metrics(s.cfg.Gather)))
	s.engine.GET("/openapi.json", s.serveOpenAPIJSON)
	s.engine.GET("/openapi.yaml", s.serveOpenAPIYAML)
	s.engine.GET("/docs", s.serveDocs)
	s.engine.GET("/download/:file", s.serveDownload)
}

// answerHead lets every route that answers GET answer HEAD, which probes and
// proxies ask with. net/http leaves the body out.
func answerHead(e *gin.Engine) {
	for _, r := range e.Routes() {
		if r.Method == http.MethodGet {
			e.HEAD(r.Path, r.HandlerFunc)
		}
	}
}

// nobody is the security of an operation that looks at no key.
var nobody = []map[string][]string{{}}

// systemOperations describes the routes that are not under /v1, less the page's,
// which are for a browser.
func systemOperations() []huma.Operation {
	return []huma.Operation{
		systemOperation("/healthz", "health", "Whether the process answers", "text/plain", nobody),
		systemOperation("/readyz", "readiness",
			"Whether this instance can do its work; with 503, a line of text says what prevents it", "text/plain",
			nobody),
		systemOperation("/metrics", "metrics",
			"Metrics in Prometheus' text format; to operators, unless the configuration opens them", "text/plain", nil),
		systemOperation("/openapi.json", "openapiJSON", "This document in JSON", openAPIInJSON, nobody),
		systemOperation("/openapi.yaml", "openapiYAML", "This document in YAML", openAPIInYAML, nobody),
		systemOperation("/docs", "docs", "The list of routes, for people", "text/html", nobody),
		downloadOperation(),
	}
}

// downloadOperation describes what a machine without a key downloads.
func downloadOperation() huma.Operation {
	op := systemOperation("/download/{file}", "download",
		"A program that this installation hands out: forewarm-node-linux-amd64, forewarm-node-static-linux-amd64, "+
			"the same of arm64, forewarm-node.sha256", "application/octet-stream", nobody)
	text := &huma.Schema{Type: huma.TypeString}
	op.Parameters = []*huma.Param{{Name: "file", In: "path", Required: true, Schema: text},
		{Name: "Range", In: "header", Description: "The part that is wanted, as in RFC 9110", Schema: text}}
	op.Responses["206"] = &huma.Response{Description: "The part that was asked for", Content: op.Responses["200"].Content}
	op.Responses["416"] = &huma.Response{Description: "There is no such part",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: text}}}
	return op
}

func systemOperation(path, id, summary, mediaType string, security []map[string][]string) huma.Operation {
	schema := &huma.Schema{Type: huma.TypeString}
	if mediaType == openAPIInJSON {
		schema.Type = huma.TypeObject
	}
	text := map[string]*huma.MediaType{mediaType: {Schema: schema}}
	op := huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"system"},
		Security:      security,
		DefaultStatus: http.StatusOK, Responses: map[string]*huma.Response{"200": {Description: "OK", Content: text}},
	}
	if path == "/readyz" {
		op.Responses["503"] = &huma.Response{Description: "Not ready: why", Content: text}
	}
	return op
}
