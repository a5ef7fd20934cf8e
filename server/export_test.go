package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/api"
	"github.com/forewarm/forewarm/server/auth"
)

// Description is the API's in memory.
func (s *Server) Description() *huma.OpenAPI { return s.doc }

// Routes lists method and pattern of everything that is registered.
func (s *Server) Routes() []string {
	var out []string
	for _, r := range s.engine.Routes() {
		if r.Method == http.MethodHead {
			continue // is GET's
		}
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// Policies are those of all routes.
func (s *Server) Policies() map[string]auth.Policy {
	out := map[string]auth.Policy{}
	for key, row := range s.byRoute {
		if key.method != http.MethodHead {
			out[key.method+" "+key.pattern] = row.Policy
		}
	}
	return out
}

// AcceptsJSON reports whether a body passes the check of its form.
func AcceptsJSON(data []byte) bool { return checkJSON(data) == nil }

// OpenAPI returns the description of the API in YAML, made from the code's
// types. contract/openapi.yaml is this text.
func OpenAPI() ([]byte, error) {
	_, doc, _ := api.Register(newEngine(), api.Config{Ledger: &verbs.Ledger{}, Clock: clock.System{},
		External: systemOperations()})
	return doc.YAML()
}

// Attend has the server look once who decides.
func (s *Server) Attend(ctx context.Context) { s.peers.Attend(ctx) }

// IsFollower reports whether another server decides.
func (s *Server) IsFollower() bool { return s.peers.IsFollower() }

// EndPeers ends what Attend began.
func (s *Server) EndPeers(ctx context.Context) { s.peers.Leave(ctx) }

// OrdersFromNow returns a look for what daemons are told, which asks those that are attached to report.
func (s *Server) OrdersFromNow() (look func(ctx context.Context) error) {
	all := ordersFromNow()
	return func(ctx context.Context) error {
		var failed error
		for _, o := range all {
			failed = errors.Join(failed, s.askOnce(ctx, o))
		}
		return failed
	}
}
