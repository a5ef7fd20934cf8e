package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

// route is what is known of a route before anybody asks.
type route struct {
	operation.Operation
	known     bool  // it has a policy: a route without one answers nobody
	bodyLimit int64 // how large a body may be, in bytes; zero: none is read
	rpc       bool  // it is called over gRPC and its kin, which say what bodies are
	reads     bool  // it changes nothing, whatever its method
	before    bool  // it is one of package compat
}

// routeKey is a method and a pattern.
type routeKey struct{ method, pattern string }

// routes says of every route what its operation demands.
type routes map[routeKey]*route

// newRoutes has the API's operations, and what is beside them. HEAD is GET without
// the body.
func newRoutes(api []operation.Operation, openMetrics bool) routes {
	out := routes{}
	for _, op := range api {
		out.add(op.Route(), op)
	}
	for pattern, policy := range map[string]auth.Policy{
		"GET /healthz":      auth.Public,
		"GET /readyz":       auth.Public,
		"GET /openapi.json": auth.Public,
		"GET /openapi.yaml": auth.Public,
		"GET /docs":         auth.Public,
		downloadRoute:       auth.Public,
		"GET /":             auth.Public, // has a sign-in of its own
		"GET /login":        auth.Public,
		"POST /login":       auth.Public,
		"POST /logout":      auth.Public,
		"GET /assets/:file": auth.Public,
		"GET /metrics":      metricsPolicy(openMetrics),
	} {
		out.add(pattern, operation.Operation{Policy: policy})
	}
	out.add(nodeServiceRoute, operation.Operation{Policy: auth.Nodes, Streams: true})
	return out
}

func metricsPolicy(open bool) auth.Policy {
	policy := auth.Operator
	policy.Public = open
	return policy
}

func (r routes) add(template string, op operation.Operation) {
	method, pattern, _ := strings.Cut(template, " ")
	row := &route{Operation: op, known: true, bodyLimit: bodyLimit(pattern, op)}
	r[routeKey{method, pattern}] = row
	if method == http.MethodGet {
		r[routeKey{http.MethodHead, pattern}] = row
	}
}

// bodyLimit is how large a body a route takes, in bytes.
func bodyLimit(pattern string, op operation.Operation) int64 {
	switch {
	case op.MaxBody > 0:
		return op.MaxBody
	case strings.HasPrefix(pattern, operation.Prefix+"/"):
		return maxBody
	case pattern == "/login" || pattern == "/logout":
		return maxForm
	}
	return 0
}

// nowhere is the route of a request that has none.
var nowhere = &route{}

// find is the route of a request. A path that is there without the method has none.
func (r routes) find(c *gin.Context) *route {
	if row, ok := r[routeKey{c.Request.Method, c.FullPath()}]; ok {
		return row
	}
	return nowhere
}
