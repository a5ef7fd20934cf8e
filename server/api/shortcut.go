package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/operation"
)

// shortcut answers a request if it is plain. False: nothing was done, and huma is to
// answer it.
type shortcut func(*gin.Context) bool

// router registers operations, those with a shortcut so that it is tried first.
type router struct {
	engine    *gin.Engine
	shortcuts map[string]shortcut // by the operation's id; complete before the first request
}

// ServeHTTP implements http.Handler.
func (r *router) ServeHTTP(w http.ResponseWriter, q *http.Request) { r.engine.ServeHTTP(w, q) }

// Handle implements huma.Adapter.
func (r *router) Handle(op *huma.Operation, handler func(huma.Context)) {
	path := strings.NewReplacer("{", ":", "}", "").Replace(op.Path)
	r.engine.Handle(op.Method, path, func(c *gin.Context) {
		if short := r.shortcuts[op.OperationID]; short == nil || !short(c) {
			handler(humagin.NewContext(op, c))
		}
	})
}

// newShortcut is that of an operation as the document describes it; nil: there is
// none. What it answers is to the byte what huma would.
func newShortcut[I, O any](a *API, op *huma.Operation, h func(context.Context, *I) (*O, error)) shortcut {
	in := newPlainInput(a.huma.OpenAPI().Components.Schemas, op, reflect.TypeFor[I]())
	out := newPlainOutput(op, reflect.TypeFor[O]())
	if in == nil || out == nil {
		return nil
	}
	return func(c *gin.Context) bool {
		body, ok := c.Request.Body.(*httpx.WholeBody)
		if !ok || !acceptsJSON(c.GetHeader("Accept")) {
			return false
		}
		var input I
		if !in.read(c, body.Bytes(), reflect.ValueOf(&input).Elem()) {
			return false
		}
		output, err := h(c.Request.Context(), &input)
		if err != nil {
			refuseWith(a.huma, humagin.NewContext(op, c), err)
			return true
		}
		out.write(c, reflect.ValueOf(output).Elem())
		return true
	}
}

// acceptsJSON reports whether a client surely takes it.
func acceptsJSON(accept string) bool {
	return accept == "" || accept == "*/*" || accept == "application/json"
}

// refuseWith answers with an error as huma does.
func refuseWith(api huma.API, ctx huma.Context, err error) {
	if with, ok := errors.AsType[huma.HeadersError](err); ok {
		for name, values := range with.GetHeaders() {
			for _, value := range values {
				ctx.AppendHeader(name, value)
			}
		}
	}
	if err := huma.WriteErr(api, ctx, http.StatusInternalServerError, "unexpected error occurred", err); err != nil {
		panic(err)
	}
}

// plainOutput writes the answers of an operation whose headers are texts.
type plainOutput struct {
	headers []plainHeader
	status  int // where the output has it; -1: it is always the usual one
	usual   int
	body    int
}

type plainHeader struct {
	at   int
	name string
}

// newPlainOutput is nil if an answer has parts that only huma can write.
func newPlainOutput(op *huma.Operation, t reflect.Type) *plainOutput {
	p := &plainOutput{status: -1, usual: op.DefaultStatus, body: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous || !f.IsExported():
			return nil
		case f.Name == "Status":
			p.status = i
		case f.Name == "Body":
			p.body = i
		case f.Type.Kind() != reflect.String:
			return nil
		default:
			name := f.Tag.Get("header")
			if name == "" {
				name = f.Name
			}
			if http.CanonicalHeaderKey(name) == "Content-Type" {
				return nil
			}
			p.headers = append(p.headers, plainHeader{i, name})
		}
	}
	if p.body < 0 || t.Field(p.body).Type.Kind() != reflect.Struct ||
		reflect.PointerTo(t.Field(p.body).Type).Implements(reflect.TypeFor[huma.ContentTypeFilter]()) {
		return nil
	}
	return p
}

func (p *plainOutput) write(c *gin.Context, output reflect.Value) {
	for _, h := range p.headers {
		if value := output.Field(h.at).String(); value != "" {
			c.Header(h.name, value)
		}
	}
	status := p.usual
	if p.status >= 0 {
		status = int(output.Field(p.status).Int())
	}
	c.Header("Content-Type", "application/json")
	c.Status(status)
	text, err := operation.EncodeJSON(output.Field(p.body).Addr().Interface(), false)
	if err != nil {
		panic(err)
	}
	_, _ = c.Writer.Write(append(text, '\n')) // the client may be gone
}
