// Package inward asks the API from inside, in the name of whoever has asked for something that
// the API's own routes do: a call of TaskService, or a route of before.
//
// What asks so decides nothing: the API's route checks the form of the request and the role of
// whoever asks, and answers as it always does. Who asks was proved, and counted, before.
package inward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/problem"
)

// API is asked by its handler, which has the server's middleware.
type API struct{ Handler http.Handler }

// Request is one request of the API.
type Request struct {
	Method  string
	Path    string // with the prefix, such as /v1/jobs
	Query   url.Values
	Once    string // the idempotency key; empty: none
	IfMatch string // empty: none
	Body    any    // in JSON; nil: none
}

// Outside is the request from outside that has others asked.
type Outside struct {
	From      netip.Addr
	RequestID string
	Path      string
}

type (
	outsideKey struct{}
	insideKey  struct{}
)

// With returns a context in which the API may be asked. Who asks is in it already.
func With(ctx context.Context, o Outside) context.Context {
	return context.WithValue(ctx, outsideKey{}, o)
}

// About says which request from outside a problem belongs to.
func About(ctx context.Context, p *problem.Problem) *problem.Problem {
	outside, _ := ctx.Value(outsideKey{}).(Outside)
	return p.About(outside.RequestID, outside.Path)
}

// Inside reports whether a request with this context is one that Ask sends.
func Inside(ctx context.Context) bool {
	inside, _ := ctx.Value(insideKey{}).(bool)
	return inside
}

// Ask asks, and decodes the answer into a value. A refusal is a *problem.Problem about the
// request from outside.
func (a API) Ask(ctx context.Context, r Request, into any) (http.Header, error) {
	outside, _ := ctx.Value(outsideKey{}).(Outside)
	asked, err := newRequest(context.WithValue(ctx, insideKey{}, true), outside, r)
	if err != nil {
		return nil, err
	}
	got := &recorder{header: http.Header{}, status: http.StatusOK}
	a.Handler.ServeHTTP(got, asked)
	if got.status >= http.StatusBadRequest {
		return got.header, got.refusal(ctx)
	}
	if into == nil {
		return got.header, nil
	}
	if err := json.Unmarshal(got.body.Bytes(), into); err != nil {
		return got.header, fmt.Errorf("decoding the answer of %s %s: %w", r.Method, r.Path, err)
	}
	return got.header, nil
}

func newRequest(ctx context.Context, outside Outside, r Request) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("encoding a request to %s: %w", r.Path, err)
		}
		body = bytes.NewReader(data)
	}
	target := url.URL{Path: r.Path, RawQuery: r.Query.Encode()}
	asked, err := http.NewRequestWithContext(ctx, r.Method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("making a request to %s: %w", r.Path, err)
	}
	asked.Host, asked.RemoteAddr = "localhost", netip.AddrPortFrom(outside.From, 0).String()
	for name, value := range map[string]string{contract.HeaderRequestID: outside.RequestID,
		contract.HeaderIdempotencyKey: r.Once, "If-Match": r.IfMatch} {
		if value != "" {
			asked.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		asked.Header.Set("Content-Type", "application/json")
	}
	return asked, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// refusal is the problem that was answered.
func (r *recorder) refusal(ctx context.Context) error {
	var p problem.Problem
	if err := json.Unmarshal(r.body.Bytes(), &p.Problem); err != nil || p.Code == "" {
		return fmt.Errorf("the API answered %d without a problem", r.status)
	}
	return About(ctx, &p)
}
