package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/problem"
)

// checkJSON walks through a body and reports the first thing wrong with its place:
// syntax, depth, a name that comes twice, a number no float holds, text that is not
// plain.
func checkJSON(data []byte) *problem.Problem {
	if !utf8.Valid(data) {
		return malformedProblem("", "is not UTF-8")
	}
	f := form{data: data}
	if p := f.checkValue(0); p != nil {
		return p
	}
	if _, more := f.peek(); more {
		return malformedProblem("", "has something after its JSON value")
	}
	return nil
}

// form walks through JSON that is UTF-8. It keeps nothing of what is right, so that
// a body without escapes costs no memory.
type form struct {
	data []byte
	at   int    // of what comes next
	root string // the place of the outermost value
	path [httpx.MaxDepth + 1]step
	// textOnly passes over names that come twice and numbers that are too large: whoever
	// reads them names their request.
	textOnly bool
	// strict: the walk ended for what decoders take.
	strict bool
	// half is where half of a surrogate pair is in the string that was read last; zero: nowhere.
	half int
}

// step is a way from a value into one of its own: a name or a number.
type step struct {
	name  []byte // nil: the number counts
	index int
}

// place is a value so many steps down, as problems name it.
func (f *form) place(depth int) string {
	text := []byte(f.root)
	for _, s := range f.path[:depth] {
		if text = append(text, '/'); s.name != nil {
			text = append(text, s.name...)
		} else {
			text = strconv.AppendInt(text, int64(s.index), 10)
		}
	}
	return string(text)
}

// peek goes to what comes next. False, and it stays: only blanks come.
func (f *form) peek() (byte, bool) {
	for i := f.at; i < len(f.data); i++ {
		switch c := f.data[i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			f.at = i
			return c, true
		}
	}
	return 0, false
}

// take goes beyond what comes next, if it is this.
func (f *form) take(want byte) bool {
	c, more := f.peek()
	if !more || c != want {
		return false
	}
	f.at++
	return true
}

// checkValue reads one value, which is so many steps down.
func (f *form) checkValue(depth int) *problem.Problem {
	if depth > httpx.MaxDepth {
		f.strict = true
		return malformedProblem(f.place(depth), fmt.Sprintf("nests deeper than %d levels", httpx.MaxDepth))
	}
	switch c, _ := f.peek(); {
	case c == '{':
		f.at++
		return f.checkObject(depth)
	case c == '[':
		f.at++
		return f.checkArray(depth)
	case c == '"':
		if text, plain, ok := f.readString(); ok {
			return f.checkText(depth, text, plain)
		}
	case c == '-' || isDigit(c):
		if text, exponent, ok := f.readNumber(); ok {
			return f.checkNumber(depth, text, exponent)
		}
	case f.readWord("true") || f.readWord("false") || f.readWord("null"):
		return nil
	}
	return f.wrongValue(depth)
}

func (f *form) wrongValue(depth int) *problem.Problem {
	return malformedProblem(f.place(depth),
		fmt.Sprintf("is not valid JSON (at byte %d); numbers must be finite, and NaN is none", f.at))
}

func (f *form) wrongForm(place string) *problem.Problem {
	return malformedProblem(place, fmt.Sprintf("is not valid JSON (at byte %d)", f.at))
}

// hasMore reports whether a value, rather than an end, seems to come next.
func (f *form) hasMore() bool {
	c, more := f.peek()
	return more && c != ']' && c != '}'
}

// checkArray reads on after the bracket.
func (f *form) checkArray(depth int) *problem.Problem {
	for i := 0; f.hasMore(); i++ {
		f.path[depth] = step{index: i}
		if depth < httpx.MaxDepth && i > 0 && !f.take(',') {
			return f.wrongValue(depth + 1)
		}
		if p := f.checkValue(depth + 1); p != nil {
			return p
		}
	}
	if !f.take(']') {
		return f.wrongForm(f.place(depth))
	}
	return nil
}

// checkObject reads on after the brace.
func (f *form) checkObject(depth int) *problem.Problem {
	var seen nameSet
	last := depth // steps to the last value before
	for i := 0; f.hasMore(); i++ {
		name, plain, ok := f.readName(i == 0)
		if !ok { // what is wrong is between the value before and here
			return f.wrongForm(f.place(last))
		}
		f.path[depth] = step{name: name}
		last = depth + 1
		if !seen.add(name) && !f.textOnly {
			return malformedProblem(f.place(last), "comes twice")
		}
		if p := f.checkText(depth, name, plain); p != nil {
			return p
		}
		if depth < httpx.MaxDepth && !f.take(':') {
			return f.wrongValue(last)
		}
		if p := f.checkValue(last); p != nil {
			return p
		}
	}
	if !f.take('}') {
		return f.wrongForm(f.place(depth))
	}
	return nil
}

// readName reads the name of a member, after a comma unless it is the first.
func (f *form) readName(first bool) (name []byte, plain, ok bool) {
	if !first && !f.take(',') {
		return nil, false, false
	}
	if c, _ := f.peek(); c != '"' {
		return nil, false, false
	}
	return f.readString()
}

// readString reads a string and decodes it. It is plain if it has no character that
// text could be refused for.
func (f *form) readString() (text []byte, plain, ok bool) {
	escaped, plain := false, true
	f.half = 0
	for i := f.at + 1; i < len(f.data); i++ {
		switch c := f.data[i]; {
		case c == '"':
			quoted := f.data[f.at : i+1]
			f.at = i + 1
			if escaped {
				return unquote(quoted), false, true
			}
			return quoted[1 : len(quoted)-1], plain, true
		case c == '\\':
			n, whole := escapeLength(f.data[i:])
			if n == 0 {
				return nil, false, false
			}
			if !whole && f.half == 0 {
				f.half = i
			}
			escaped, i = true, i+n-1
		case c < ' ':
			return nil, false, false
		case c > '~':
			plain = false
		}
	}
	return nil, false, false
}

// unquote decodes a string that is known to be one, as whoever reads it behind will.
func unquote(quoted []byte) []byte {
	var text string
	_ = json.Unmarshal(quoted, &text)
	return []byte(text)
}

// escapeLength is the length of the escape that the text begins with, or of the pair of them that is one
// character; zero if it is none. It is not whole if it is half of such a pair.
func escapeLength(text []byte) (n int, whole bool) {
	if len(text) >= 2 && bytes.IndexByte([]byte(`"\/bfnrt`), text[1]) >= 0 {
		return 2, true
	}
	first, ok := escapedUnit(text)
	switch {
	case !ok:
		return 0, false
	case !utf16.IsSurrogate(first):
		return 6, true
	}
	if second, ok := escapedUnit(text[6:]); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
		return 12, true
	}
	return 6, false
}

// escapedUnit reads the four digits of the escape that the text begins with, if it has them.
func escapedUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// readNumber reads as much as makes a number.
func (f *form) readNumber() (text []byte, exponent, ok bool) {
	i := f.at
	if f.data[i] == '-' {
		i++
	}
	whole := i
	if i = f.skipDigits(i); i == whole {
		return nil, false, false
	}
	if f.data[whole] == '0' { // what follows a zero is not part of the number
		i = whole + 1
	}
	if i < len(f.data) && f.data[i] == '.' {
		fraction := i + 1
		if i = f.skipDigits(fraction); i == fraction {
			return nil, false, false
		}
	}
	if i < len(f.data) && f.data[i]|0x20 == 'e' {
		if i++; i < len(f.data) && (f.data[i] == '+' || f.data[i] == '-') {
			i++
		}
		power := i
		if i = f.skipDigits(i); i == power {
			return nil, false, false
		}
		exponent = true
	}
	text, f.at = f.data[f.at:i], i
	return text, exponent, true
}

func (f *form) skipDigits(i int) int {
	for i < len(f.data) && isDigit(f.data[i]) {
		i++
	}
	return i
}

// surelyFinite is how many characters a number without an exponent may have and be
// within the bounds of floats, whatever they are.
const surelyFinite = 300

func (f *form) checkNumber(depth int, text []byte, exponent bool) *problem.Problem {
	if f.textOnly || !exponent && len(text) <= surelyFinite {
		return nil
	}
	if n, err := strconv.ParseFloat(string(text), 64); err != nil || math.IsInf(n, 0) {
		return malformedProblem(f.place(depth), "is a number beyond all bounds")
	}
	return nil
}

func (f *form) checkText(depth int, text []byte, plain bool) *problem.Problem {
	if plain {
		return nil
	}
	if f.half > 0 {
		f.strict = true
		return malformedProblem(f.place(depth),
			fmt.Sprintf("has half of a surrogate pair, which is no character (at byte %d)", f.half))
	}
	return checkPlainText(f.place(depth), string(text))
}

// readWord reads a word if it is there.
func (f *form) readWord(word string) bool {
	if !bytes.HasPrefix(f.data[f.at:], []byte(word)) {
		return false
	}
	f.at += len(word)
	return true
}

// nameSet has the names of an object. Most have few, which are compared one by one.
type nameSet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add reports false for a name that was there.
func (s *nameSet) add(name []byte) bool {
	if s.many != nil {
		n := len(s.many)
		s.many[string(name)] = struct{}{}
		return len(s.many) > n
	}
	for _, other := range s.few[:s.n] {
		if bytes.Equal(other, name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 2*len(s.few))
	for _, other := range s.few {
		s.many[string(other)] = struct{}{}
	}
	s.many[string(name)] = struct{}{}
	return true
}

func malformedProblem(place, message string) *problem.Problem {
	what := place
	if what == "" {
		what = "the body"
	}
	return problem.New(contract.CodeMalformedJSON, what+" "+message).
		Field(contract.FieldError{Pointer: place, Code: "malformed", Message: message}).
		Request("Send one JSON object in UTF-8")
}
