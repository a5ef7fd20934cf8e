package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
)

// described compares every exchange of a test with the API's description.
// Requests that the page answers are not described: they are for a browser.
type described struct {
	t    testing.TB
	doc  *huma.OpenAPI
	next http.Handler
}

// reached are the operations and statuses of success of all tests so far.
var reached sync.Map

// ServeHTTP answers and compares.
func (d described) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tee := &teeWriter{ResponseWriter: w, status: http.StatusOK}
	d.next.ServeHTTP(tee, r)
	for _, wrong := range d.compareExchange(r, tee) {
		d.t.Errorf("%s %s is answered with %d, and contract/openapi.yaml does not say so: %s", r.Method, r.URL,
			tee.status, wrong)
	}
}

// ourHeaders are the headers that must be described where they occur.
var ourHeaders = []string{
	"Location", "ETag", "Retry-After", "Preference-Applied", "Link", "Allow", "WWW-Authenticate", "Deprecation",
	"Sunset",
	contract.HeaderIdempotencyReplayed, contract.HeaderRequestID,
}

// compareExchange returns what the description does not say.
func (d described) compareExchange(r *http.Request, got *teeWriter) []string {
	path, item := d.findPath(r.URL.Path)
	var op *huma.Operation
	if item != nil {
		op = operationOf(item, r.Method)
	}
	var response *huma.Response
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/") && op == nil &&
		!slices.Contains([]int{400, 404, 405, 421, 429, 500}, got.status):
		return []string{"there is no such operation"}
	case op == nil && got.Header().Get("Content-Type") != contract.ProblemContentType:
		return nil // the page's
	case op == nil:
		response = d.doc.Components.Responses[strings.ReplaceAll(http.StatusText(got.status), " ", "")]
	default:
		response = op.Responses[strconv.Itoa(got.status)]
	}
	if response != nil && response.Ref != "" {
		response = d.doc.Components.Responses[strings.TrimPrefix(response.Ref, "#/components/responses/")]
	}
	if response == nil {
		return []string{"the status"}
	}
	wrong := d.compareAnswer(response, got, r.Method)
	if op == nil { // the router says Allow before anything else refuses the request
		wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "the header Allow" })
	} else {
		wrong = append(wrong, compareRequest(op, r, got)...)
		if got.status < 300 {
			reached.Store(fmt.Sprintf("%s %d", op.OperationID, got.status), path)
		}
	}
	return wrong
}

// findPath finds the pattern of a path, the one with the fewest parameters.
func (d described) findPath(asked string) (best string, item *huma.PathItem) {
	for pattern, i := range d.doc.Paths {
		if pathMatches(pattern, asked) && (item == nil || strings.Count(pattern, "{") < strings.Count(best, "{")) {
			best, item = pattern, i
		}
	}
	return best, item
}

func pathMatches(pattern, asked string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(asked, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != ""
	})
}

func operationOf(item *huma.PathItem, method string) *huma.Operation {
	return map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodHead: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
		http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}[method]
}

// compareAnswer checks headers, media type and body.
func (d described) compareAnswer(want *huma.Response, got *teeWriter, method string) (wrong []string) {
	for _, name := range ourHeaders {
		if _, ok := want.Headers[name]; !ok && got.Header().Get(name) != "" {
			wrong = append(wrong, "the header "+name)
		}
	}
	if method == http.MethodHead || got.body.Len() == 0 {
		return wrong
	}
	kind, _, _ := mime.ParseMediaType(got.Header().Get("Content-Type"))
	media, ok := want.Content[kind]
	if !ok {
		return append(wrong, "the media type "+kind)
	}
	if !strings.HasSuffix(kind, "json") || media.Schema.Type == huma.TypeString {
		return wrong
	}
	for dec := json.NewDecoder(&got.body); dec.More(); {
		var v any
		if err := dec.Decode(&v); err != nil {
			return append(wrong, "a body that ends early")
		}
		var res huma.ValidateResult
		huma.Validate(d.doc.Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v,
			&res)
		for _, err := range res.Errors {
			wrong = append(wrong, "the body: "+err.Error())
		}
	}
	return wrong
}

// compareRequest checks that what was accepted was asked as described, and that
// what is said to be required is.
func compareRequest(op *huma.Operation, r *http.Request, got *teeWriter) (wrong []string) {
	names := map[string]*huma.Param{}
	for _, p := range op.Parameters {
		names[p.In+" "+p.Name] = p
	}
	key := names["header "+contract.HeaderIdempotencyKey]
	required := key != nil && key.Required
	if got.status >= 300 {
		if strings.Contains(got.body.String(), contract.CodeMissingIdempotencyKey) && !required {
			wrong = append(wrong, "that the Idempotency-Key is required")
		}
		return wrong
	}
	if required && r.Header.Get(contract.HeaderIdempotencyKey) == "" && r.URL.Query().Get("dry_run") != "true" {
		wrong = append(wrong, "that it needs no Idempotency-Key")
	}
	for name := range r.URL.Query() {
		if names["query "+name] == nil {
			wrong = append(wrong, "the parameter "+name)
		}
	}
	for _, name := range []string{"If-Match", "Prefer", "Last-Event-ID"} {
		if r.Header.Get(name) != "" && names["header "+name] == nil {
			wrong = append(wrong, "the header "+name+" of the request")
		}
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.HasPrefix(op.Path, "/v1/") && r.ContentLength > 0 &&
		(op.RequestBody == nil || kind != "" && op.RequestBody.Content[kind] == nil) {
		wrong = append(wrong, "a body of the media type "+kind)
	}
	return wrong
}

// Hijack implements http.Hijacker.
func (t *teeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(t.ResponseWriter).Hijack()
}

// teeWriter keeps what is sent.
type teeWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (t *teeWriter) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *teeWriter) Write(p []byte) (int, error) {
	t.body.Write(p)
	return t.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, which gin asks for.
func (t *teeWriter) Flush() { _ = http.NewResponseController(t.ResponseWriter).Flush() }

// Unwrap gives http.ResponseController the way to everything else.
func (t *teeWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
