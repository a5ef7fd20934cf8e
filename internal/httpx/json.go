package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxDepth is how deep arrays and objects may nest in JSON from outside.
const MaxDepth = 32

var (
	// ErrEmpty is the error of JSON that has no value.
	ErrEmpty = errors.New("there is no JSON value")
	// ErrTrailing is the error of JSON with more than white space after its value.
	ErrTrailing = errors.New("there is data after the JSON value")
	// ErrTooDeep is the error of JSON that nests deeper than MaxDepth.
	ErrTooDeep = fmt.Errorf("the JSON nests deeper than %d levels", MaxDepth)
)

// ReadJSON reads r to its end, at most limit bytes, and decodes it as DecodeJSON
// does.
func ReadJSON(r io.Reader, limit int64, v any) error {
	data, err := ReadBody(r, limit)
	if err != nil {
		return err
	}
	return DecodeJSON(data, v)
}

// DecodeJSON decodes exactly one JSON value into v. Fields that v does not have
// are an error, since a misspelt setting must not be a silent default. Other
// errors are ErrEmpty, ErrTrailing, ErrTooDeep and those of encoding/json. After
// an error v may be partly set.
func DecodeJSON(data []byte, v any) error {
	if tooDeep(data) {
		return fmt.Errorf("decoding JSON: %w", ErrTooDeep)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if errors.Is(err, io.EOF) {
		err = ErrEmpty
	}
	if err != nil {
		return fmt.Errorf("decoding JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("decoding JSON: %w", ErrTrailing)
	}
	return nil
}

// tooDeep counts brackets outside of strings. It looks before the decoder does,
// which allows 10 000 levels and recurses on each.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
