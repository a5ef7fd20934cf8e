// Package operation says what the API can do, each thing once: who may do it,
// what it asks, what it will lock, which verb of the ledger it calls, and how
// its answer goes over the wire.
//
// Idempotency, dry runs and plans follow from that, so that whatever renders
// operations finds the same ones. Package api renders them over HTTP.
package operation

import (
	"strings"

	"github.com/forewarm/forewarm/server/auth"
)

// Prefix is the beginning of every path of the API.
const Prefix = "/v1"

// Operation describes one thing that the API can do.
type Operation struct {
	ID      string
	Method  string
	Path    string // below Prefix, such as /pools/{id}
	Tag     string
	Summary string
	Status  int // of success; zero means 200
	Policy  auth.Policy

	Queues  bool // its answer may be 202: what was asked for is made, and waits
	Streams bool // its answer has no end
	// Upgrades says that it becomes a WebSocket.
	Upgrades bool
	Waits    bool  // its answer may be held until what was asked for is there
	MaxBody  int64 // of its body, in bytes; zero means the usual bound
	// ShowsSecret says that its answer has a secret that is stored nowhere, and that a repeat makes another one: it
	// refuses an Idempotency-Key.
	ShowsSecret bool
	// Problems are statuses of problems besides those of every operation of its form.
	Problems []int
}

// Template is the method and the path with its parameters in braces, as in
// "GET /v1/pools/{id}". Idempotency keys are apart by it.
func (o Operation) Template() string { return o.Method + " " + Prefix + o.Path }

// Route is Template as the router writes it, as in "GET /v1/pools/:id".
func (o Operation) Route() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(o.Template())
}
