package api

import (
	"bytes"
	"reflect"
	"strconv"
	"time"
)

// readBody reads a body that is one plain object.
func (p *plainInput) readBody(data []byte, body reflect.Value) bool {
	r := plainReader{data: data}
	return p.readObject(&r, body) && r.isAtEnd()
}

// readObject reads an object whose members are texts without escapes, whole numbers,
// times and truth values.
func (p *plainInput) readObject(r *plainReader, body reflect.Value) bool {
	if !r.take('{') {
		return false
	}
	var seen uint64
	for first := true; !r.take('}'); first = false {
		if !first && !r.take(',') {
			return false
		}
		name, ok := r.readText()
		if !ok {
			return false
		}
		field, known := p.fields[string(name)]
		if !known || seen&field.bit != 0 || !r.take(':') || !r.readValue(field, body) {
			return false
		}
		seen |= field.bit
	}
	return seen&p.required == p.required
}

// plainReader goes through a body.
type plainReader struct {
	data []byte
	at   int
}

func (r *plainReader) skipBlanks() {
	for r.at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n"), r.data[r.at]) >= 0 {
		r.at++
	}
}

// isAtEnd reports whether nothing but blanks is left.
func (r *plainReader) isAtEnd() bool {
	r.skipBlanks()
	return r.at == len(r.data)
}

// take goes beyond what comes next, if it is this.
func (r *plainReader) take(want byte) bool {
	r.skipBlanks()
	if r.at == len(r.data) || r.data[r.at] != want {
		return false
	}
	r.at++
	return true
}

// readText reads a string of printable ASCII without escapes.
func (r *plainReader) readText() ([]byte, bool) {
	if !r.take('"') {
		return nil, false
	}
	for i := r.at; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			text := r.data[r.at:i]
			r.at = i + 1
			return text, true
		case c == '\\' || c < ' ' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

// readValue reads a value into its field.
func (r *plainReader) readValue(field plainField, body reflect.Value) bool {
	to := body.FieldByIndex(field.at)
	switch field.kind {
	case reflect.String:
		text, ok := r.readText()
		if !ok {
			return false
		}
		value := string(text)
		to.SetString(value)
		return field.rule.allows(value)
	case reflect.Struct:
		return r.readTime(to)
	case reflect.Int:
		n, ok := r.readWhole()
		to.SetInt(n)
		return ok && (field.min == nil || float64(n) >= *field.min) && (field.max == nil || float64(n) <= *field.max)
	}
	yes := r.readWord("true")
	to.SetBool(yes)
	return yes || r.readWord("false")
}

// readTime reads a time as time.Time does, whose form is stricter than a schema's.
func (r *plainReader) readTime(to reflect.Value) bool {
	text, ok := r.readText()
	if !ok {
		return false
	}
	at, ok := to.Addr().Interface().(*time.Time)
	return ok && at.UnmarshalText(text) == nil
}

// mostDigits of a whole number are held exactly by floats, as which schemas see it.
const mostDigits = 15

// readWhole reads a whole number without a fraction or an exponent.
func (r *plainReader) readWhole() (int64, bool) {
	r.skipBlanks()
	from := r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	digits := r.at
	for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' {
		r.at++
	}
	if n := r.at - digits; n == 0 || n > mostDigits || n > 1 && r.data[digits] == '0' {
		return 0, false
	}
	if r.at < len(r.data) && bytes.IndexByte([]byte(".eE"), r.data[r.at]) >= 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(r.data[from:r.at]), 10, 64)
	return n, err == nil
}

func (r *plainReader) readWord(word string) bool {
	r.skipBlanks()
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return false
	}
	r.at += len(word)
	return true
}
