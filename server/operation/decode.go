package operation

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
)

// DecodeJSON is json.Unmarshal into the value at the pointer, which must be zero. What
// EncodeJSON wrote is read by the table with which it was written: its members are where
// they are expected. Whatever else comes is left to encoding/json.
func DecodeJSON(text []byte, pointer any) error {
	v := reflect.ValueOf(pointer).Elem()
	d := jsonDecoder{rest: text}
	if d.readValue(jsonPlanOf(v.Type()), v) && len(d.rest) == 0 {
		return nil
	}
	v.SetZero()
	return json.Unmarshal(text, pointer)
}

// decodesItself reports whether what points to a value reads it in a way of its own.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// jsonDecoder reads until something is not as expected: then it reports false.
type jsonDecoder struct{ rest []byte }

// take goes beyond what comes next, if it is this.
func (d *jsonDecoder) take(want string) bool {
	if len(d.rest) < len(want) || string(d.rest[:len(want)]) != want {
		return false
	}
	d.rest = d.rest[len(want):]
	return true
}

func (d *jsonDecoder) readValue(p *jsonPlan, v reflect.Value) bool {
	switch {
	case p.isTime:
		return d.readTime(v)
	case p.readsItself:
		return d.readOther(v)
	case p.kind == reflect.String:
		return d.readText(v)
	case p.kind == reflect.Int:
		return d.readInt(v)
	case p.kind == reflect.Bool:
		yes := d.take("true")
		v.SetBool(yes)
		return yes || d.take("false")
	case p.kind == reflect.Pointer && d.take("null"):
		return true
	case p.kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.readValue(p.target, v.Elem())
	case p.kind == reflect.Struct:
		return d.readStruct(p, v)
	}
	return d.readOther(v)
}

func (d *jsonDecoder) readStruct(p *jsonPlan, v reflect.Value) bool {
	if !d.take("{") {
		return false
	}
	first := true
	for i := range p.fields {
		f, before := &p.fields[i], d.rest
		if !first && !d.take(",") {
			break
		}
		if !d.take(f.label) {
			d.rest = before
			continue
		}
		if !d.readValue(f.plan, f.valueIn(v)) {
			return false
		}
		first = false
	}
	return d.take("}")
}

// plainText is the text of printable ASCII without escapes that comes next.
func (d *jsonDecoder) plainText() ([]byte, bool) {
	if len(d.rest) == 0 || d.rest[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(d.rest); i++ {
		switch c := d.rest[i]; {
		case c == '"':
			text := d.rest[1:i]
			d.rest = d.rest[i+1:]
			return text, true
		case c == '\\' || c < ' ' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

func (d *jsonDecoder) readText(v reflect.Value) bool {
	text, ok := d.plainText()
	if !ok {
		return d.readOther(v)
	}
	v.SetString(string(text))
	return true
}

func (d *jsonDecoder) readTime(v reflect.Value) bool {
	at, ok := timeIn(v)
	text, plain := d.plainText()
	return ok && plain && at.UnmarshalText(text) == nil
}

func (d *jsonDecoder) readInt(v reflect.Value) bool {
	length := 0
	for length < len(d.rest) && (d.rest[length] == '-' || '0' <= d.rest[length] && d.rest[length] <= '9') {
		length++
	}
	n, err := strconv.ParseInt(string(d.rest[:length]), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	d.rest = d.rest[length:]
	return true
}

// readOther leaves a value to encoding/json.
func (d *jsonDecoder) readOther(v reflect.Value) bool {
	length := valueLength(d.rest)
	if json.Unmarshal(d.rest[:length], v.Addr().Interface()) != nil {
		return false
	}
	d.rest = d.rest[length:]
	return true
}

// valueLength is how long the value is with which a text begins, up to what ends it.
func valueLength(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringLength(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		ends := depth < 0 || depth == 0 && text[i] == ','
		if ends {
			return i
		}
	}
	return len(text)
}

// stringLength is how long the string is with which a text begins, with its quotes.
func stringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		next := bytes.IndexAny(text[i:], `"\`)
		if next < 0 {
			return len(text)
		}
		if i += next; text[i] == '"' {
			return i + 1
		}
		i++ // what is escaped
	}
	return len(text)
}
