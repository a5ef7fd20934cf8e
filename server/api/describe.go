package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// keyRequired marks, in an operation's metadata, that it refuses a request
// without an idempotency key.
const keyRequired = "idempotency-key-required"

// describedAs marks, in an operation's metadata, what it is in package operation.
const describedAs = "operation"

// completeDocument adds to the document what holds for operations of a kind, whatever
// their types say: which problems they answer with, and the headers of all
// answers.
func completeDocument(doc *huma.OpenAPI) {
	doc.Components.Responses = problemResponses(doc.Components.Schemas)
	doc.Components.Parameters = map[string]*huma.Param{contract.HeaderRequestID: {
		Name: contract.HeaderRequestID, In: "header",
		Schema:      &huma.Schema{Type: huma.TypeString, Pattern: "^[0-9A-Za-z_.-]{1,64}$"},
		Description: "Names the request in the answer and in the server's log. An id in another form is replaced.",
	}}
	doc.Components.Headers = map[string]*huma.Header{}
	for name, description := range answerHeaders {
		doc.Components.Headers[name] = &huma.Header{Description: description,
			Schema: &huma.Schema{Type: huma.TypeString}}
	}
	for _, op := range operationsIn(doc) {
		completeOperation(op)
	}
}

// operationsIn lists all operations that the document describes.
func operationsIn(doc *huma.OpenAPI) (all []*huma.Operation) {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	return all
}

// answerHeaders says what the headers of answers mean.
var answerHeaders = map[string]string{
	contract.HeaderRequestID: "The id of the request in the server's log.",
	contract.HeaderIdempotencyReplayed: "true when this is the stored answer of the first request with the same " +
		"Idempotency-Key.",
	"ETag":               "The version that is answered, to be sent as If-Match.",
	"Location":           "Where to read what was made.",
	"Preference-Applied": "The longest time for which the answer was held, such as wait=30.",
	"Retry-After":        "Seconds after which it is worth trying again.",
	"WWW-Authenticate":   "How to authenticate: with an API key as a bearer token.",
	"Allow":              "The methods that the path has.",
}

func headerRef(name string) *huma.Param { return &huma.Param{Ref: "#/components/headers/" + name} }

// problemHeaders are the headers of problems besides the request's id.
var problemHeaders = map[int][]string{
	http.StatusUnauthorized:        {"WWW-Authenticate"},
	http.StatusMethodNotAllowed:    {"Allow"},
	http.StatusTooManyRequests:     {"Retry-After"},
	http.StatusServiceUnavailable:  {"Retry-After"},
	http.StatusInsufficientStorage: {"Retry-After"},
}

// problemResponses describes the problems of each status, with their codes.
func problemResponses(registry huma.Registry) map[string]*huma.Response {
	out := map[string]*huma.Response{}
	schema := registry.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")
	for _, t := range contract.Catalogue {
		name := responseName(t.Status)
		if r, ok := out[name]; ok {
			r.Description += "; " + t.Code + ": " + t.Title
			continue
		}
		headers := map[string]*huma.Param{contract.HeaderRequestID: headerRef(contract.HeaderRequestID)}
		for _, h := range problemHeaders[t.Status] {
			headers[h] = headerRef(h)
		}
		out[name] = &huma.Response{
			Description: t.Code + ": " + t.Title, Headers: headers,
			Content: map[string]*huma.MediaType{contract.ProblemContentType: {Schema: schema}},
		}
	}
	return out
}

func responseName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// completeOperation adds what the kind of the operation brings with it.
func completeOperation(op *huma.Operation) {
	op.Parameters = append(op.Parameters, &huma.Param{Ref: "#/components/parameters/" + contract.HeaderRequestID})
	delete(op.Responses, "default")
	describeOutcomes(op)
	for _, r := range op.Responses {
		for name := range r.Headers {
			r.Headers[name] = headerRef(name)
		}
		if r.Headers == nil {
			r.Headers = map[string]*huma.Param{}
		}
		r.Headers[contract.HeaderRequestID] = headerRef(contract.HeaderRequestID)
	}
	for _, status := range problemsOf(op) {
		if name := strconv.Itoa(status); op.Responses[name] == nil {
			op.Responses[name] = &huma.Response{Ref: "#/components/responses/" + responseName(status)}
		}
	}
	for _, p := range op.Parameters {
		if p.Name == contract.HeaderIdempotencyKey && op.Metadata[keyRequired] == true {
			p.Required = true
			if hasParameter(op, "dry_run") {
				p.Description += " A request with dry_run needs none."
			}
		}
	}
	if op.Method == http.MethodPatch {
		op.RequestBody.Content[MergePatch] = op.RequestBody.Content["application/json"]
	}
}

// describeOutcomes adds the answers of success that are not the usual one.
func describeOutcomes(op *huma.Operation) {
	usual := op.Responses[strconv.Itoa(op.DefaultStatus)]
	does, _ := op.Metadata[describedAs].(operation.Operation)
	if does.Upgrades {
		delete(op.Responses, strconv.Itoa(op.DefaultStatus))
		op.Responses["101"] = &huma.Response{Description: "The session: each message is, in binary, a byte that names a " +
			"channel, and its data (docs/using-an-allocation.md)"}
		return
	}
	if does.Streams && len(usual.Content) == 0 {
		usual.Content = map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString,
				Description: "Each message's data is an Event."}},
			"application/x-ndjson": {Schema: &huma.Schema{Ref: "#/components/schemas/Event"}},
		}
	}
	if hasParameter(op, "dry_run") && op.DefaultStatus != http.StatusOK {
		op.Responses["200"] = &huma.Response{Description: "What would happen, of a request with dry_run",
			Content: usual.Content}
	}
	if does.Queues {
		op.Responses["202"] = &huma.Response{
			Description: "It is made, and waits for its GPUs; read it at Location", Content: usual.Content,
			Headers: maps.Clone(usual.Headers),
		}
	}
}

// MergePatch is the media type of RFC 7396, which says what PATCH does here.
const MergePatch = "application/merge-patch+json"

// problemsOf lists the statuses of the problems that an operation can answer
// with. A method that a path does not have is no operation's: 405 is described
// among the components.
func problemsOf(op *huma.Operation) []int {
	statuses := []int{400, 421, 429, 500}
	if !strings.HasPrefix(op.Path, "/v1/") {
		if strings.Contains(op.Path, "{") {
			statuses = append(statuses, 404)
		}
		if len(op.Security) == 0 {
			return append(statuses, 401, 403, 503, 504)
		}
		return statuses
	}
	statuses = append(statuses, 401, 403, 404, 409, 503, 504)
	if op.RequestBody != nil {
		statuses = append(statuses, 408, 413, 415, 422)
	}
	if op.Method != http.MethodGet {
		statuses = append(statuses, 422, 507)
	}
	if hasParameter(op, "If-Match") {
		statuses = append(statuses, 412, 428)
	}
	does, _ := op.Metadata[describedAs].(operation.Operation)
	return append(statuses, does.Problems...)
}

func hasParameter(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name })
}
