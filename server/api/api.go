// Package api has the operations under /v1: each decodes a request, calls one
// verb of the ledger or reads, and encodes the answer. It decides nothing.
//
// huma checks requests by the tags of package contract and makes openapi.yaml of
// the same types; errors of every kind go through package problem. A request that
// has nothing unusual is read by tables made of huma's description (plain.go), and
// gets the same answer sooner.
package api

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/peers"
	"github.com/forewarm/forewarm/server/problem"
	"github.com/forewarm/forewarm/server/sessions"
	"github.com/forewarm/forewarm/server/telemetry"
)

// Config is what the operations work with.
type Config struct {
	Ledger *verbs.Ledger
	Clock  clock.Clock
	Log    *slog.Logger
	Feed   *events.Feed
	Auth   *auth.Authenticator
	Minter auth.Minter
	Build  contract.Build
	// KeyLife is how long a person's key works that is made without a word of its
	// end.
	KeyLife time.Duration
	// Peers are the other servers, one of which may decide; nil: there are none.
	Peers *peers.Group
	// Telemetry is what the daemons of nodes say.
	Telemetry *telemetry.Hub
	// Sessions reach the daemons that open them.
	Sessions *sessions.Hub
	// NewDaemon is how long after the start of an allocation the daemon of its node may take
	// until sessions are refused without it.
	NewDaemon time.Duration
	// PublicURL is where others reach the API; empty: nobody has said.
	PublicURL string
	// External are operations that somebody else answers, to be described with the
	// API's own.
	External []huma.Operation
}

// API is what the operations share.
type API struct {
	Config
	huma   huma.API
	router *router
	names  *names
	kinds  map[string]planKind // what can be planned
	// answers decide what another server was asked, by operation.
	answers map[string]peers.Answerer
}

// Register adds every operation to the engine. It returns the API, their description
// and what each demands.
func Register(engine *gin.Engine, cfg Config) (*API, *huma.OpenAPI, []operation.Operation) {
	problem.Install()
	a := &API{Config: cfg, router: &router{engine: engine, shortcuts: map[string]shortcut{}}, names: &names{},
		kinds: map[string]planKind{}, answers: map[string]peers.Answerer{}}
	a.huma = huma.NewAPI(describeAPI(), a.router)
	all := endpoints(a)
	operations := make([]operation.Operation, 0, len(all))
	inputs := map[string]reflect.Type{}
	for _, e := range all {
		e.register()
		operations, inputs[e.ID] = append(operations, e.Operation), e.input
	}
	doc := a.huma.OpenAPI()
	completeTags(doc, inputs)
	for _, op := range cfg.External {
		doc.AddOperation(&op)
	}
	completeDocument(doc)
	a.addShortcuts(doc, all)
	return a, doc, operations
}

// addShortcuts gives operations their shortcuts, now that the document says all.
func (a *API) addShortcuts(doc *huma.OpenAPI, all []endpoint) {
	described := map[string]*huma.Operation{}
	for _, op := range operationsIn(doc) {
		described[op.OperationID] = op
	}
	for _, e := range all {
		if short := e.shorten(described[e.ID]); short != nil {
			a.router.shortcuts[e.ID] = short
		}
	}
}

// endpoints are all operations of the API, by noun.
func endpoints(a *API) []endpoint {
	return slices.Concat(identityEndpoints(a), organizationEndpoints(a), userEndpoints(a), quotaEndpoints(a),
		keyEndpoints(a), poolEndpoints(a), nodeEndpoints(a), daemonEndpoints(a), gpuEndpoints(a),
		prewarmEndpoints(a), calendarEndpoints(a), sessionEndpoints(a), allocationEndpoints(a),
		reservationEndpoints(a), jobEndpoints(a), priorityEndpoints(a), nodeJobEndpoints(a), batchEndpoints(a),
		scheduleEndpoints(a), agentEndpoints(a), forecastEndpoints(a), journalEndpoints(a), reportEndpoints(a),
		decisionEndpoints(a), explanationEndpoints(a), planEndpoints(a), recoveryEndpoints(a), auditEndpoints(a))
}

// describeAPI is what the document says of the API as a whole.
func describeAPI() huma.Config {
	c := huma.DefaultConfig("Forewarm", contract.Version)
	c.CreateHooks, c.OpenAPIPath, c.DocsPath, c.SchemasPath = nil, "", "", ""
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": wholeJSON, "json": wholeJSON}
	c.Transformers = []huma.Transformer{locateProblem}
	c.Info.Description = "GPU capacity that is warm before it is needed. Every failure is a problem document (RFC " +
		"9457). Every path with GET also answers HEAD, without the body; a method that a path does not have gets 405 " +
		"and Allow. " +
		"An operation that does not take an Idempotency-Key has one effect however often it is sent, and ignores one; but " +
		"those that show a new token or key of a node's daemon, which is stored nowhere, refuse one. createKey answers a " +
		"second request with the same one with 409, and names the key that the first one made."
	c.Servers = []*huma.Server{{URL: "/",
		Description: "The server that gave you this document, or where you reach your own"}}
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", BearerFormat: "fw_<env>_<id>_<secret>_<checksum>"},
	}
	c.Security = []map[string][]string{{"key": {}}}
	return c
}

// locateProblem says which request a problem belongs to.
func locateProblem(ctx huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*problem.Problem); ok {
		u := ctx.URL()
		return p.About(humagin.Unwrap(ctx).Writer.Header().Get(contract.HeaderRequestID), u.Path), nil
	}
	return v, nil
}

// addNames puts names beside the ids of an answer. What was asked for is done: that
// the names cannot be read makes the answer poorer and no failure.
func (a *API) addNames(ctx context.Context, op operation.Operation, answer any) {
	if err := a.fillNames(ctx, auth.From(ctx).Scope(), answer); err != nil {
		a.Log.WarnContext(ctx, "an answer has no names", "operation", op.ID, "error", err)
	}
}

// toProblem translates an error and logs what the caller is not told. asked is what
// the path named, which is then told by name.
func (a *API) toProblem(ctx context.Context, op operation.Operation, asked string, err error) error {
	p, told := problem.From(err)
	if !told {
		a.Log.ErrorContext(ctx, "request failed", "operation", op.ID, "error", err)
	}
	invalid, isInvalid := errors.AsType[*ledger.InvalidError](err)
	parameter, isParameter := errors.AsType[*nothingNamed](err)
	switch subject := pathResource(op); {
	case isParameter:
		return a.problemAt(ctx, parameter.noun, parameter.name, ledger.ErrNotFound, contract.CodeInvalidParameter,
			parameter.parameter)
	case subject != nil && p.Code == contract.CodeNotFound && p.Detail == problem.NotFound:
		p = a.notFoundProblem(ctx, *subject, asked)
	case isInvalid && invalid.Missing != nil:
		return a.problemAt(ctx, invalid.Missing.Noun, invalid.Missing.Name, ledger.ErrNotFound, p.Code,
			p.Errors[0].Pointer)
	}
	a.addNames(ctx, op, p)
	return p
}
