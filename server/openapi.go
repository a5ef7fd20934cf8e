package server

import (
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// The media types of the API's description.
const (
	openAPIInJSON = "application/vnd.oai.openapi+json"
	openAPIInYAML = "application/vnd.oai.openapi"
)

func (s *Server) serveOpenAPIJSON(c *gin.Context) {
	text, err := s.doc.MarshalJSON()
	if err != nil {
		panic(err)
	}
	c.Data(http.StatusOK, openAPIInJSON+"; version=3.1", text)
}

func (s *Server) serveOpenAPIYAML(c *gin.Context) {
	text, err := s.doc.YAML()
	if err != nil {
		panic(err)
	}
	c.Data(http.StatusOK, openAPIInYAML+"; version=3.1", text)
}

//go:embed docs.html
var docsText string

var docsPage = template.Must(template.New("docs").Parse(docsText))

// row is one operation on the page of routes.
type row struct {
	Method, Path, Summary, Tag string
}

// serveDocs lists the routes for people; the whole is in the document.
func (s *Server) serveDocs(c *gin.Context) {
	var rows []row
	for path, item := range s.doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				rows = append(rows, row{op.Method, path, op.Summary, strings.Join(op.Tags, ", ")})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return strings.Compare(a.Tag+a.Path+a.Method, b.Tag+b.Path+b.Method)
	})
	c.Header("Content-Type", "text/html; charset=utf-8")
	c.Status(http.StatusOK)
	if err := docsPage.Execute(c.Writer, rows); err != nil {
		s.cfg.Logger.WarnContext(c.Request.Context(), "sending the page of routes failed", "error", err)
	}
}
