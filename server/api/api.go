// Package api is the operations under /v1: each decodes a request, calls one
// verb of the ledger or reads, and encodes the answer. It decides nothing.
//
// huma checks requests by the tags of package contract and makes openapi.yaml of
// the same types; errors of every kind go through package problem.
package api

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/problem"
)

// Config is what the operations work with.
type Config struct {
	Ledger *ledger.Ledger
	Clock  clock.Clock
	Log    *slog.Logger
	Feed   *events.Feed
	Auth   *auth.Authenticator
	Minter auth.Minter
	Build  contract.Build
	// KeyLife is how long a person's key works that is made without a word of its
	// end.
	KeyLife time.Duration
	// Beside are operations that somebody else answers, to be described with the
	// API's own.
	Beside []huma.Operation
}

// API holds the operations.
type API struct {
	Config
	huma  huma.API
	names *names
	kinds map[string]planKind // what can be planned
}

// Register adds every operation to the engine and returns their description.
func Register(engine *gin.Engine, cfg Config) *huma.OpenAPI {
	problem.Install()
	a := &API{Config: cfg, huma: humagin.New(engine, describeAPI()), names: &names{}}
	a.registerIdentity()
	a.registerQuota()
	a.registerKeys()
	a.registerPools()
	a.registerNodes()
	a.registerGPUs()
	a.registerPrewarm()
	a.registerCalendar()
	a.registerShares()
	a.registerAllocations()
	a.registerReservations()
	a.registerBatches()
	a.registerSchedules()
	a.registerAgents()
	a.registerForecasts()
	a.registerJournal()
	a.registerDecisions()
	a.registerExplanations()
	a.registerPlans()
	a.registerRecovery()
	a.registerDeletions()
	a.registerAudit()
	doc := a.huma.OpenAPI()
	for _, op := range cfg.Beside {
		doc.AddOperation(&op)
	}
	completeDocument(doc)
	return doc
}

// describeAPI is what the document says of the API as a whole.
func describeAPI() huma.Config {
	c := huma.DefaultConfig("Forewarm", contract.Version)
	c.CreateHooks, c.OpenAPIPath, c.DocsPath, c.SchemasPath = nil, "", "", ""
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{locateProblem}
	c.Info.Description = "GPU capacity that is warm before it is asked for. Every failure is a problem document " +
		"(RFC 9457). " +
		"Every path with GET answers HEAD like it, without the body; a method that a path does not have is answered " +
		"with 405 and Allow. " +
		"An operation that does not take an Idempotency-Key ignores one."
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

// operation is one route in short.
type operation struct {
	method, path string // the path below /v1
	id           string
	tag          string
	summary      string
	status       int // of success; zero means 200
}

// registerOperation adds an operation whose errors of any kind become problems.
func registerOperation[I, O any](a *API, op operation, h func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, huma.Operation{
		OperationID: op.id, Method: op.method, Path: "/v1" + op.path, Summary: op.summary, Tags: []string{op.tag},
		DefaultStatus: op.status, Metadata: inputMetadata(reflect.TypeFor[I]()),
	}, func(ctx context.Context, in *I) (*O, error) {
		asked, _ := pathID(in)
		name := asked.String()
		err := a.resolvePathID(ctx, op, in)
		var out *O
		if err == nil {
			out, err = h(ctx, in)
		}
		if err != nil {
			return nil, a.toProblem(ctx, op, name, err)
		}
		a.addNames(ctx, op, out)
		return out, nil
	})
}

// addNames puts names beside the ids of an answer. What was asked for is done: that
// the names cannot be read makes the answer poorer and no failure.
func (a *API) addNames(ctx context.Context, op operation, answer any) {
	if err := a.fillNames(ctx, auth.From(ctx).Scope(), answer); err != nil {
		a.Log.WarnContext(ctx, "an answer has no names", "operation", op.id, "error", err)
	}
}

// toProblem translates an error and logs what the caller is not told. asked is what
// the path named, which is then told by name.
func (a *API) toProblem(ctx context.Context, op operation, asked string, err error) error {
	p, told := problem.From(err)
	if !told {
		a.Log.ErrorContext(ctx, "request failed", "operation", op.id, "error", err)
	}
	invalid, isInvalid := errors.AsType[*ledger.InvalidError](err)
	parameter, isParameter := errors.AsType[*nothingNamed](err)
	switch subject := op.pathResource(); {
	case isParameter:
		return a.problemAt(ctx, parameter.noun, parameter.name, ledger.ErrNotFound, contract.CodeInvalidParameter,
			parameter.parameter)
	case subject != nil && p.Code == contract.CodeNotFound && p.Detail == problem.NotFound:
		p = a.notFoundProblem(ctx, *subject, asked)
	case isInvalid && invalid.Missing != nil:
		return a.problemAt(ctx, invalid.Missing.Noun, invalid.Missing.Name, ledger.ErrNotFound, p.Code, p.Errors[0].Pointer)
	}
	a.addNames(ctx, op, p)
	return p
}

// inputMetadata is what the type of an input says beyond huma's tags.
func inputMetadata(input reflect.Type) map[string]any {
	_, required := input.FieldByName("KeyRequired")
	return map[string]any{problem.FieldsKey: bodyFields(input), keyRequired: required}
}

// bodyFields lists the fields that may occur in an input's body, at any depth, as
// paths such as windows.gpus.
func bodyFields(t reflect.Type) []string {
	body, ok := t.FieldByName("Body")
	if !ok {
		return nil
	}
	var names []string
	collectFields(body.Type, "", &names)
	slices.Sort(names)
	return slices.Compact(names)
}

func collectFields(t reflect.Type, under string, names *[]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[contract.Problem]().PkgPath() {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" { // its fields are its holder's
			collectFields(f.Type, under, names)
			continue
		}
		*names = append(*names, under+name)
		collectFields(f.Type, under+name+".", names)
	}
}
