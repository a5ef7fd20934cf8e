package strictyaml

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

var (
	nodeReader  = reflect.TypeFor[yaml.Unmarshaler]()
	textReader  = reflect.TypeFor[encoding.TextUnmarshaler]()
	anything    = reflect.TypeFor[yaml.Node]()
	goDuration  = reflect.TypeFor[time.Duration]()
	ourDuration = reflect.TypeFor[Duration]()
)

// checkNode walks a node beside the type that it will be read into and returns the
// first key that is unknown or stands twice, the first value of a wrong type, or
// the first alias.
func checkNode(n *yaml.Node, t reflect.Type, at string) *Error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return &Error{Line: n.Line, Message: "anchors and aliases are not read here", Fix: "write the value out"}
	}
	if n.Tag == "!!null" {
		return &Error{Line: n.Line, Message: at + " has no value", Fix: "write one, or remove the line"}
	}
	if t == ourDuration {
		return checkDays(n, at)
	}
	if p := reflect.PointerTo(t); t == anything || p.Implements(nodeReader) {
		return nil
	} else if p.Implements(textReader) {
		return checkText(n, t, at)
	}
	if t == goDuration {
		return checkDuration(n, at)
	}
	if !fitsType(n, t) {
		return &Error{Line: n.Line, Message: cmp.Or(at, "the file") + " is not " + describeType(t),
			Fix: "write " + describeType(t)}
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if bad := checkNode(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); bad != nil {
				return bad
			}
		}
	case yaml.MappingNode:
		return checkKeys(n, t, at)
	}
	return nil
}

// checkText lets a type that reads text say what is wrong with it.
func checkText(n *yaml.Node, t reflect.Type, at string) *Error {
	if n.Kind != yaml.ScalarNode {
		return &Error{Line: n.Line, Message: at + " is not text", Fix: "write text"}
	}
	if err := n.Decode(reflect.New(t).Interface()); err != nil {
		return &Error{Line: n.Line, Message: at + ": " + err.Error(), Fix: "correct the value"}
	}
	return nil
}

// checkDuration is for adapters' own structs, whose durations have the library's
// type, which reads no days.
func checkDuration(n *yaml.Node, at string) *Error {
	if _, err := time.ParseDuration(n.Value); n.Kind != yaml.ScalarNode || err != nil {
		return &Error{Line: n.Line, Message: at + " is not a duration",
			Fix: "write a number with its unit, such as 300ms, 90s or 2h"}
	}
	return nil
}

// checkDays is for durations that may have days.
func checkDays(n *yaml.Node, at string) *Error {
	if _, err := ParseDuration(n.Value); n.Kind != yaml.ScalarNode || err != nil {
		return noDuration(n, at)
	}
	return nil
}

// fitsType is stricter than the YAML library, which cuts 1.5 down to 1 on its own.
func fitsType(n *yaml.Node, t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return n.Kind == yaml.MappingNode
	case reflect.Slice:
		return n.Kind == yaml.SequenceNode
	case reflect.Bool:
		return n.Kind == yaml.ScalarNode && n.Tag == "!!bool"
	case reflect.String:
		return n.Kind == yaml.ScalarNode
	case reflect.Float64:
		v := 0.0
		return (n.Tag == "!!float" || n.Tag == "!!int") && n.Decode(&v) == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	default:
		v := reflect.New(t)
		return n.Tag == "!!int" && n.Decode(v.Interface()) == nil
	}
}

// describeType names a type as a person would who has never seen Go.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	case reflect.Slice:
		return "a list (lines that begin with -)"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

func checkKeys(n *yaml.Node, t reflect.Type, at string) *Error {
	fields := fieldsOf(t)
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if line, twice := first[key.Value]; twice {
			return &Error{Line: key.Line, Message: fmt.Sprintf("%s is set here and on line %d",
				qualifiedName(at, key.Value),
				line), Fix: "remove one of the two"}
		}
		first[key.Value] = key.Line
		inner, known := fields[key.Value]
		switch {
		case t.Kind() == reflect.Map:
			inner = t.Elem()
		case !known:
			return unknownKey(key, fields, at)
		}
		if bad := checkNode(n.Content[i+1], inner, qualifiedName(at, key.Value)); bad != nil {
			return bad
		}
	}
	return nil
}

func unknownKey(key *yaml.Node, fields map[string]reflect.Type, at string) *Error {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	e := &Error{Line: key.Line, Message: "there is no key " + qualifiedName(at, key.Value),
		Fix: "remove it; known here: " + strings.Join(names, ", ")}
	if near, ok := Closest(key.Value, names); ok {
		e.Fix = "write " + near
	}
	return e
}

// fieldsOf returns the keys of a struct and their types; none for other kinds.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return fields
	}
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case strings.Contains(rest, "inline"):
			for inner, kind := range fieldsOf(f.Type) {
				fields[inner] = kind
			}
		case name == "":
			fields[strings.ToLower(f.Name)] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func qualifiedName(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// Closest returns the name that is the fewest typing errors away from wrong, if
// that is close enough to be meant.
func Closest(wrong string, names []string) (string, bool) {
	best, least := "", max(2, len(wrong)/3)+1
	for _, name := range names {
		if d := editDistance(wrong, name); d < least {
			best, least = name, d
		}
	}
	return best, best != ""
}

// editDistance is the number of bytes to insert, delete or replace to turn a into b
// (Levenshtein 1966), capped at the length of what is too long to compare.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above, cost := row[j+1], 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above+1, row[j]+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
