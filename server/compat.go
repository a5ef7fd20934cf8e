package server

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/server/compat"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// addCompat adds what a route of before demands.
func (r routes) addCompat(c compat.Route) {
	op := operation.Operation{Policy: c.Policy}
	if c.Method == http.MethodPost || c.Method == http.MethodPut {
		op.MaxBody = maxBody
	}
	r.add(c.Method+" "+c.Path, op)
	r[routeKey{c.Method, c.Path}].before = true
}

// registerCompat serves the routes of before.
func (s *Server) registerCompat() {
	for _, route := range compat.Routes() {
		s.byRoute.addCompat(route)
		s.engine.Handle(route.Method, route.Path, s.serveCompat(route))
	}
}

func (s *Server) serveCompat(route compat.Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		call := &compat.Call{Context: comeInward(c), API: inward.API{Handler: s.engine}, Param: c.Param,
			Query: c.Request.URL.Query(), Now: s.cfg.Clock.Now(), Once: c.GetHeader(contract.HeaderIdempotencyKey)}
		if whole, ok := c.Request.Body.(*httpx.WholeBody); ok {
			call.Body = whole.Bytes()
		}
		if call.Once == "" {
			call.Once = "call-" + s.cfg.IDs.New(ids.Request)
		}
		status, body, err := route.Answer(call)
		if err != nil {
			p, told := problem.From(err)
			if !told {
				s.cfg.Logger.ErrorContext(call.Context, "request failed", "route", route.Path, "error", err)
			}
			abortWith(c, p)
			return
		}
		writeJSON(c, status, body)
	}
}

func writeJSON(c *gin.Context, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // none of the shapes can fail to be encoded
		abortWith(c, problem.New(contract.CodeInternal, "The answer could not be encoded."))
		return
	}
	c.Data(status, "application/json", append(data, '\n'))
}

// refuseBefore answers a route of before with a problem that has what old clients read, too.
func refuseBefore(c *gin.Context, p *problem.Problem) bool {
	x := exchangeOf(c)
	if x == nil || !x.route.before {
		return false
	}
	p.WriteAs(c.Writer, compat.Failure{Problem: p.Problem, Error: p.Detail})
	return true
}
