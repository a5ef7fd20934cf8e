package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// itemCheck holds the requests of one batch to the schema of a request that comes
// alone. It is not safe for concurrent use.
type itemCheck[B, R any] struct {
	form     itemForm[B, R]
	registry huma.Registry
	schema   *huma.Schema
	plain    *plainInput // nil: no request is plain
	fields   []string
	path     *huma.PathBuffer
	result   huma.ValidateResult
}

func newItemCheck[B, R any](a *API, form itemForm[B, R]) *itemCheck[B, R] {
	c := &itemCheck[B, R]{
		form: form, registry: a.huma.OpenAPI().Components.Schemas, schema: itemSchema[B](a),
		path: huma.NewPathBuffer(make([]byte, 0, 64), 0),
	}
	collectFields(reflect.TypeFor[B](), "", &c.fields)
	slices.Sort(c.fields)
	c.plain = newPlainItem[B](c.registry, c.schema)
	return c
}

// newPlainItem is the table by which plain requests of a batch are read; nil if there is none.
func newPlainItem[B any](registry huma.Registry, s *huma.Schema) *plainInput {
	p := &plainInput{fields: map[string]plainField{}}
	if !p.addFields(registry, resolveSchema(registry, s), reflect.TypeFor[B]()) {
		return nil
	}
	return p
}

// readPlainBatch reads a batch in one pass. False: a request is not plain, or there are too
// few or too many.
func (c *itemCheck[B, R]) readPlainBatch(body []byte) ([]ledger.Item[R], bool) {
	if c.plain == nil {
		return nil, false
	}
	r := plainReader{data: body}
	array := r.take('[')
	batch := make([]ledger.Item[R], 0, min(len(body)/leastItem+1, ledger.MaxBatch))
	for len(batch) < ledger.MaxBatch {
		var b B
		if !c.plain.readObject(&r, reflect.ValueOf(&b).Elem()) {
			return nil, false
		}
		batch = append(batch, c.itemOf(b))
		if array && !r.take(',') {
			return batch, r.take(']') && r.isAtEnd()
		}
		if !array && r.isAtEnd() {
			return batch, true
		}
	}
	return nil, false
}

// leastItem is about how many bytes the shortest sensible request has.
const leastItem = 64

// itemSchema is that of a request that comes alone.
func itemSchema[B any](a *API) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[B](), true, "")
}

// findProblem says what is wrong with one request; nil: nothing.
func (c *itemCheck[B, R]) findProblem(raw json.RawMessage) *problem.Problem {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil { // a number that no float holds
		return malformedItem("", strings.TrimPrefix(err.Error(), "json: "))
	}
	if object, ok := value.(map[string]any); ok && countMembers(raw) != len(object) {
		name := repeatedMember(raw)
		return malformedItem("/"+name, "comes twice")
	}
	c.path.Reset()
	c.path.Push("body")
	c.result.Reset()
	huma.Validate(c.registry, c.schema, c.path, huma.ModeWriteToServer, value, &c.result)
	if len(c.result.Errors) == 0 {
		return nil
	}
	return problem.OfSchema(c.fields, c.result.Errors)
}

// countMembers counts the members of a JSON object, repeated ones too.
func countMembers(object []byte) (n int) {
	depth, inString := 0, false
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			n++
		}
	}
	return n
}

// repeatedMember is the first name that comes twice in a JSON object.
func repeatedMember(object []byte) string {
	dec := json.NewDecoder(bytes.NewReader(object))
	seen := map[string]bool{}
	_, err := dec.Token() // the brace
	for err == nil && dec.More() {
		var token json.Token
		if token, err = dec.Token(); err != nil {
			break
		}
		name, _ := token.(string)
		if seen[name] {
			return name
		}
		seen[name] = true
		var value json.RawMessage
		err = dec.Decode(&value)
	}
	return ""
}

func malformedItem(place, message string) *problem.Problem {
	what := strings.TrimPrefix(place, "/")
	if what == "" {
		what = "the request"
	}
	return problem.New(contract.CodeMalformedJSON, what+" "+message).
		Field(contract.FieldError{Pointer: place, Code: "malformed", Message: message}).
		Request("Send one JSON object in UTF-8")
}
