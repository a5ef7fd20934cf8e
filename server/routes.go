package server

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

// routes says of every route, by method and pattern, what its operation demands. A
// route without a row answers nobody.
type routes map[string]operation.Operation

// newRoutes has the API's operations, and what is beside them.
func newRoutes(api []operation.Operation) routes {
	out := routes{}
	for _, op := range api {
		out[op.Route()] = op
	}
	for route, policy := range map[string]auth.Policy{
		"GET /healthz":      auth.Public,
		"GET /readyz":       auth.Public,
		"GET /openapi.json": auth.Public,
		"GET /openapi.yaml": auth.Public,
		"GET /docs":         auth.Public,
		"GET /":             auth.Public, // has a sign-in of its own
		"GET /login":        auth.Public,
		"POST /login":       auth.Public,
		"POST /logout":      auth.Public,
		"GET /assets/:file": auth.Public,
		"GET /metrics":      auth.Operator,
	} {
		out[route] = operation.Operation{Policy: policy}
	}
	return out
}

// operationOf is the operation that a request is for. HEAD is GET without the body.
func (s *Server) operationOf(c *gin.Context) (operation.Operation, bool) {
	method := c.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op, ok := s.byRoute[method+" "+c.FullPath()]
	return op, ok
}
