package api

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// endpoint is one operation as HTTP serves it.
type endpoint struct {
	operation.Operation
	input    reflect.Type
	register func()
	shorten  func(*huma.Operation) shortcut
}

// serve serves an operation whose errors of any kind become problems.
func serve[I, O any](a *API, op operation.Operation, h func(context.Context, *API, *I) (*O, error)) endpoint {
	return serveDescribed(a, op, func(*huma.Operation) {}, h)
}

// serveDescribed is serve of an operation that the types of its input and output do
// not describe whole.
func serveDescribed[I, O any](a *API, op operation.Operation, describe func(*huma.Operation),
	h func(context.Context, *API, *I) (*O, error)) endpoint {
	subject, hasID := pathResource(op), hasPathID(reflect.TypeFor[I]())
	answer := func(ctx context.Context, in *I) (out *O, err error) {
		var asked string
		if hasID {
			id := pathID(in)
			asked = id.String()
			err = a.resolvePathID(ctx, subject, id)
		}
		if err == nil {
			out, err = h(ctx, a, in)
		}
		if err != nil {
			return nil, a.toProblem(ctx, op, asked, err)
		}
		a.addNames(ctx, op, out)
		return out, nil
	}
	return endpoint{op, reflect.TypeFor[I](), func() {
		described := huma.Operation{
			OperationID: op.ID, Method: op.Method, Path: operation.Prefix + op.Path, Summary: op.Summary,
			Tags: []string{op.Tag}, DefaultStatus: op.Status, MaxBodyBytes: op.MaxBody,
			Metadata: inputMetadata(op, reflect.TypeFor[I]()),
		}
		describe(&described)
		huma.Register(a.huma, described, answer)
	}, func(described *huma.Operation) shortcut { return newShortcut(a, described, answer) }}
}

// serveChange serves a change that may be asked for again and again: what it asks
// says so, as a version does.
func serveChange[I, B, T, C any](a *API, c operation.Change[B, T, C], asked func(*I) (B, error),
	version func(C) int) endpoint {
	e := serve(a, c.Operation, func(ctx context.Context, a *API, in *I) (*One[C], error) {
		b, err := asked(in)
		if err != nil {
			return nil, err
		}
		got, err := c.Do(ctx, a.Ledger, a.viewer(ctx), b)
		if err != nil {
			return nil, err
		}
		out := &One[C]{Body: got}
		if version != nil {
			out.ETag = formatETag(version(got))
		}
		return out, nil
	})
	return planned(a, c, e)
}

// serveOnce serves a change that has one effect for each idempotency key. locate
// says where to read what was made, and in which version; nil, or nothing: nothing was made, or several things.
func serveOnce[I keyed, B, T, C any](a *API, c operation.Change[B, T, C], asked func(*I) B,
	locate func(C) (path string, version int)) endpoint {
	e := serve(a, c.Operation, func(ctx context.Context, a *API, in *I) (*Created[C], error) {
		got, dry, err := changeOnce(ctx, a, c, *in, asked(in))
		if err != nil {
			return nil, err
		}
		out := &Created[C]{Status: got.Status, Body: got.Body, Replayed: formatReplayed(got.Replayed)}
		if locate != nil && !dry {
			path, version := locate(got.Body)
			if out.Location = path; version > 0 {
				out.ETag = formatETag(version)
			}
		}
		return out, nil
	})
	return forwarded(a, c, planned(a, c, e))
}

// changeOnce does what is asked at most once, or shows what would come of it.
func changeOnce[B, T, C any](ctx context.Context, a *API, c operation.Change[B, T, C], in keyed,
	b B) (got operation.Answer[C], dry bool, err error) {
	v := a.viewer(ctx)
	if p, ok := in.(interface{ isDryRun() bool }); ok && p.isDryRun() {
		got, err = c.DryRun(ctx, a.Ledger, v, b)
		return got, true, err
	}
	r, err := c.Accept(ctx, v, b)
	if err != nil {
		return got, false, err
	}
	key, err := in.idempotencyKey()
	if err != nil {
		return got, false, err
	}
	got, err = decide(ctx, a, c, v, key, r)
	return got, false, err
}

// planned lets plans show a change, if it has a kind of plan.
func planned[B, T, C any](a *API, c operation.Change[B, T, C], e endpoint) endpoint {
	if c.Plan == "" {
		return e
	}
	register := e.register
	e.register = func() {
		a.kinds[c.Plan] = planKind{policy: c.Policy, prepare: c.Planned,
			schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[B](), true, "")}
		register()
	}
	return e
}

// viewer is who asks, now.
func (a *API) viewer(ctx context.Context) operation.Viewer {
	return operation.Viewer{Actor: auth.From(ctx), Now: a.Clock.Now()}
}

// inputMetadata is what an operation and the type of its input say beyond tags.
func inputMetadata(op operation.Operation, input reflect.Type) map[string]any {
	_, required := input.FieldByName("KeyRequired")
	return map[string]any{problem.FieldsKey: bodyFields(input), keyRequired: required, describedAs: op}
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
