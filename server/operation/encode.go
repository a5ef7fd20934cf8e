package operation

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// EncodeJSON returns what encoding/json makes of the value at the pointer, to the
// byte, by a table of its type that is made once. html says whether <, > and & are
// escaped, as json.Marshal does.
func EncodeJSON(pointer any, html bool) ([]byte, error) {
	e := jsonEncoder{html: html, text: make([]byte, 0, usualLength)}
	v := reflect.ValueOf(pointer).Elem()
	e.appendValue(jsonPlanOf(v.Type()), v)
	return e.text, e.err
}

// usualLength is enough for most answers, in bytes.
const usualLength = 768

// jsonPlan says how values of a type are written. Without fields and a kind it is
// left to encoding/json.
type jsonPlan struct {
	kind   reflect.Kind // String, Int, Bool, Struct or Pointer; Invalid: encoding/json's
	isTime bool
	fields []jsonField
	target *jsonPlan // of a pointer

	readsItself bool // only encoding/json reads it
}

type jsonField struct {
	at        []int
	label     string // "name":
	omitEmpty bool
	omitZero  bool
	plan      *jsonPlan
}

// valueIn is the field of a struct, or of one that it embeds.
func (f *jsonField) valueIn(v reflect.Value) reflect.Value {
	value := v.Field(f.at[0])
	for _, at := range f.at[1:] {
		value = value.Field(at)
	}
	return value
}

var jsonPlans sync.Map // reflect.Type → *jsonPlan

func jsonPlanOf(t reflect.Type) *jsonPlan {
	if known, ok := jsonPlans.Load(t); ok {
		return known.(*jsonPlan)
	}
	plan := makeJSONPlan(t)
	plan.readsItself = decodesItself(t)
	jsonPlans.Store(t, plan)
	return plan
}

func makeJSONPlan(t reflect.Type) *jsonPlan {
	if t == reflect.TypeFor[time.Time]() {
		return &jsonPlan{kind: reflect.Struct, isTime: true}
	}
	if encodesItself(t) {
		return &jsonPlan{}
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool:
		return &jsonPlan{kind: t.Kind()}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &jsonPlan{kind: reflect.Int}
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct && !encodesItself(t.Elem()) {
			if target := jsonPlanOf(t.Elem()); target.kind == reflect.Struct && !target.isTime {
				return &jsonPlan{kind: reflect.Pointer, target: target}
			}
		}
	case reflect.Struct:
		if fields, ok := jsonFieldsOf(t); ok {
			return &jsonPlan{kind: reflect.Struct, fields: fields}
		}
	}
	return &jsonPlan{}
}

// encodesItself reports whether values, or what points to them, have a form of their
// own.
func encodesItself(t reflect.Type) bool {
	for _, one := range []reflect.Type{t, reflect.PointerTo(t)} {
		if one.Implements(reflect.TypeFor[json.Marshaler]()) || one.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return true
		}
	}
	return false
}

// jsonFieldsOf lists the members of a struct in their order; false: their names need
// the rules of encoding/json.
func jsonFieldsOf(t reflect.Type) (fields []jsonField, ok bool) {
	if holdsItself(t, nil) {
		return nil, false
	}
	seen := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			if name != "" || f.Type.Kind() != reflect.Struct || !f.IsExported() || encodesItself(f.Type) {
				return nil, false
			}
			continue
		case f.Tag.Get("json") == "-" || !f.IsExported():
			continue
		case !isPlainName(name) || seen[name]:
			return nil, false
		}
		seen[name] = true
		field := jsonField{at: f.Index, label: `"` + name + `":`, plan: jsonPlanOf(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				field.omitEmpty = true
			case "omitzero":
				field.omitZero = true
				if _, own := f.Type.MethodByName("IsZero"); own && f.Type != reflect.TypeFor[time.Time]() ||
					reflect.PointerTo(f.Type).Implements(reflect.TypeFor[interface{ IsZero() bool }]()) != own {
					return nil, false
				}
			case "":
			default:
				return nil, false
			}
		}
		fields = append(fields, field)
	}
	return fields, true
}

// holdsItself reports whether a struct leads back to one that it is within.
func holdsItself(t reflect.Type, within []reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, outer := range within {
		if outer == t {
			return true
		}
	}
	for i := range t.NumField() {
		if holdsItself(t.Field(i).Type, append(within, t)) {
			return true
		}
	}
	return false
}

func isPlainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// jsonEncoder writes until something goes wrong.
type jsonEncoder struct {
	html bool
	text []byte
	err  error
}

func (e *jsonEncoder) appendValue(p *jsonPlan, v reflect.Value) {
	switch {
	case p.isTime:
		e.appendTime(v)
	case p.kind == reflect.String:
		e.appendText(v)
	case p.kind == reflect.Int:
		e.text = strconv.AppendInt(e.text, v.Int(), 10)
	case p.kind == reflect.Bool:
		e.text = strconv.AppendBool(e.text, v.Bool())
	case p.kind == reflect.Pointer && v.IsNil():
		e.text = append(e.text, "null"...)
	case p.kind == reflect.Pointer:
		e.appendValue(p.target, v.Elem())
	case p.kind == reflect.Struct:
		e.appendStruct(p, v)
	default:
		e.appendOther(v)
	}
}

func (e *jsonEncoder) appendStruct(p *jsonPlan, v reflect.Value) {
	e.text = append(e.text, '{')
	begun := len(e.text)
	for i := range p.fields {
		f := &p.fields[i]
		value := f.valueIn(v)
		if f.omitEmpty && isEmptyJSON(value) || f.omitZero && isZeroJSON(f.plan, value) {
			continue
		}
		if len(e.text) > begun {
			e.text = append(e.text, ',')
		}
		e.text = append(e.text, f.label...)
		e.appendValue(f.plan, value)
	}
	e.text = append(e.text, '}')
}

// isEmptyJSON reports whether omitempty leaves a value out.
func isEmptyJSON(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZeroJSON(p *jsonPlan, v reflect.Value) bool {
	if at, ok := timeIn(v); ok && p.isTime {
		return at.IsZero()
	}
	return v.IsZero()
}

// timeIn is the time in a value, which has an address.
func timeIn(v reflect.Value) (*time.Time, bool) {
	if v.Type() != reflect.TypeFor[time.Time]() {
		return nil, false
	}
	at, ok := v.Addr().Interface().(*time.Time)
	return at, ok
}

func (e *jsonEncoder) appendTime(v reflect.Value) {
	at, _ := timeIn(v)
	e.text = append(e.text, '"')
	text, err := at.AppendText(e.text)
	if err != nil {
		e.text = e.text[:len(e.text)-1]
		e.appendOther(v) // which says it in its words
		return
	}
	e.text = append(text, '"')
}

func (e *jsonEncoder) appendText(v reflect.Value) {
	text := v.String()
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', e.html && (c == '<' || c == '>' || c == '&'):
			e.appendOther(v)
			return
		}
	}
	e.text = append(e.text, '"')
	e.text = append(e.text, text...)
	e.text = append(e.text, '"')
}

// appendOther leaves a value to encoding/json.
func (e *jsonEncoder) appendOther(v reflect.Value) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(e.html)
	if err := enc.Encode(v.Interface()); err != nil {
		e.err = err
		return
	}
	e.text = append(e.text, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}
