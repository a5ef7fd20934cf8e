package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// plainInput reads the requests of an operation that have nothing unusual: it checks
// what the operation's schemas say in one pass over the body, by a table that is made
// at the start, and takes only what it is sure of. huma reads all others, and says
// what is wrong with them.
type plainInput struct {
	parameters []plainParameter
	body       []int // where the input has it
	fields     map[string]plainField
	required   uint64      // the fields that must be there, by their bits
	defaults   []plainText // the fields that have a text when nothing is given
	mostBytes  int64
}

// plainParameter is a header or a part of the path.
type plainParameter struct {
	at     []int
	name   string
	inPath bool
	rule   textRule
}

// plainField is a field of a body, which is no object and no list.
type plainField struct {
	at       []int
	bit      uint64
	kind     reflect.Kind // String, Int, Bool, or Struct for a time
	rule     textRule
	min, max *float64
}

type plainText struct {
	at   []int
	text string
}

// newPlainInput makes the table of an operation as the document describes it; nil if
// there is none, as its input has parts that only huma can read.
func newPlainInput(registry huma.Registry, op *huma.Operation, input reflect.Type) *plainInput {
	body, ok := input.FieldByName("Body")
	_, raw := input.FieldByName("RawBody")
	if !ok || raw || body.Type.Kind() != reflect.Struct || op.RequestBody == nil ||
		op.RequestBody.Content["application/json"] == nil {
		return nil
	}
	p := &plainInput{body: body.Index, fields: map[string]plainField{}, mostBytes: op.MaxBodyBytes}
	schema := resolveSchema(registry, op.RequestBody.Content["application/json"].Schema)
	if !p.addParameters(op, input) || !p.addFields(registry, schema, body.Type) {
		return nil
	}
	return p
}

func resolveSchema(registry huma.Registry, s *huma.Schema) *huma.Schema {
	for s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	return s
}

// addParameters reports false if one cannot be read here. Those of the query are left
// out: a request with a query is not plain.
func (p *plainInput) addParameters(op *huma.Operation, input reflect.Type) bool {
	for _, f := range reflect.VisibleFields(input) {
		if f.Anonymous || f.Name == "Body" || len(f.Index) > 0 && f.Index[0] == p.body[0] {
			continue
		}
		in, name := "header", f.Tag.Get("header")
		if name == "" {
			in, name = "path", f.Tag.Get("path")
		}
		_, required := f.Tag.Lookup("required")
		if _, preset := f.Tag.Lookup("default"); preset || required {
			return false
		}
		if name == "" {
			if f.Tag.Get("query") == "" {
				return false
			}
			continue
		}
		at := slices.IndexFunc(op.Parameters, func(q *huma.Param) bool { return q.In == in && q.Name == name })
		if at < 0 || f.Type != reflect.TypeFor[string]() {
			return false
		}
		rule, ok := textRuleOf(op.Parameters[at].Schema)
		if !ok {
			return false
		}
		p.parameters = append(p.parameters, plainParameter{at: f.Index, name: name, inPath: in == "path", rule: rule})
	}
	return true
}

// addFields reports false if the body as a whole cannot be read here. A field that
// cannot is left out: a body that has it is not plain.
func (p *plainInput) addFields(registry huma.Registry, s *huma.Schema, t reflect.Type) bool {
	if s.Type != huma.TypeObject || isComposed(s) || s.MinProperties != nil || s.MaxProperties != nil ||
		len(s.DependentRequired) > 0 {
		return false
	}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			if f.Type.Kind() != reflect.Struct || name != "" {
				return false
			}
			continue
		}
		if text := f.Tag.Get("default"); text != "" {
			if f.Type.Kind() != reflect.String {
				return false
			}
			p.defaults = append(p.defaults, plainText{f.Index, text})
		}
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			return false // it may have fields that are filled in
		}
		property := s.Properties[name]
		if _, twice := p.fields[name]; twice || len(p.fields) == 64 {
			return false
		}
		if property == nil || strings.Contains(options, "string") {
			continue
		}
		if field, ok := plainFieldOf(resolveSchema(registry, property), f); ok {
			field.bit = 1 << len(p.fields)
			p.fields[name] = field
		}
	}
	for _, name := range s.Required {
		field, ok := p.fields[name]
		if !ok {
			return false
		}
		p.required |= field.bit
	}
	return true
}

// isComposed reports whether a schema has rules that no table here has.
func isComposed(s *huma.Schema) bool {
	return s.OneOf != nil || s.AnyOf != nil || s.AllOf != nil || s.Not != nil || s.ContentEncoding != "" ||
		s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil
}

// plainFieldOf is the row of a field; false: only huma can read it.
func plainFieldOf(s *huma.Schema, f reflect.StructField) (plainField, bool) {
	field := plainField{at: f.Index, kind: f.Type.Kind()}
	isTime, whole := f.Type == reflect.TypeFor[time.Time](), f.Type == reflect.TypeFor[int]() ||
		f.Type == reflect.TypeFor[int64]()
	switch {
	case isComposed(s) || !isTime && decodesItself(f.Type):
		return field, false
	case s.Type == huma.TypeString && s.Format == "date-time" && isTime:
		return field, s.MinLength == nil && s.MaxLength == nil && s.Pattern == "" && len(s.Enum) == 0
	case s.Type == huma.TypeString && field.kind == reflect.String:
		rule, ok := textRuleOf(s)
		field.rule = rule
		return field, ok
	case s.Type == huma.TypeInteger && whole:
		field.kind, field.min, field.max = reflect.Int, s.Minimum, s.Maximum
		return field, len(s.Enum) == 0
	}
	return field, s.Type == huma.TypeBoolean && field.kind == reflect.Bool && len(s.Enum) == 0
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// read fills an input from a request. False: the request is not plain, and what is in
// the input counts for nothing.
func (p *plainInput) read(c *gin.Context, data []byte, input reflect.Value) bool {
	contentType := c.GetHeader("Content-Type")
	if c.Request.URL.RawQuery != "" || contentType != "" && contentType != "application/json" ||
		int64(len(data)) >= p.mostBytes {
		return false
	}
	for _, one := range p.parameters {
		value := ""
		if one.inPath {
			value = c.Param(one.name)
		} else {
			value = c.GetHeader(one.name)
		}
		if value == "" && !one.inPath {
			continue
		}
		if value == "" || !one.rule.allows(value) {
			return false
		}
		input.FieldByIndex(one.at).SetString(value)
	}
	body := input.FieldByIndex(p.body)
	if !p.readBody(data, body) {
		return false
	}
	for _, one := range p.defaults {
		if f := body.FieldByIndex(one.at); f.Len() == 0 {
			f.SetString(one.text)
		}
	}
	return true
}
