// Package strictyaml reads configuration files that people write. An unknown
// key, a repeated one and a value of the wrong type are errors that name the
// file, the line and the fix: a misspelt setting must never be a silent
// default.
//
// A value that is exactly env(NAME) is taken from the environment, so that no
// file has to hold a secret. Anchors and aliases are refused. No error quotes a
// value, since it may be a secret.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Error is one thing wrong with a file.
type Error struct {
	Path    string
	Line    int // from 1; 0 when it is about the file as a whole
	Message string
	Fix     string
}

// Error renders path:line: message, and the fix on a line of its own.
func (e *Error) Error() string {
	at := e.Path
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	return fmt.Sprintf("%s: %s\n  fix: %s", at, e.Message, e.Fix)
}

// Decode reads data, which came from path, into the struct that into points to.
// Keys are the names of the yaml tags. What the file does not mention stays as it
// is, so that the caller may fill in defaults before. The error is an *Error;
// after one, into may be partly set.
func Decode(path string, data []byte, into any) error {
	root, err := parseDocument(path, data)
	if err != nil || root == nil {
		return err
	}
	bad := expandEnv(root)
	if bad == nil {
		bad = checkNode(root, reflect.TypeOf(into).Elem(), "")
	}
	if bad != nil {
		bad.Path = path
		return bad
	}
	if err := root.Decode(into); err != nil {
		return translateError(path, err)
	}
	return nil
}

// DecodeNode reads a part of the file at path that Decode kept as a yaml.Node,
// with the same checks. at names the part in errors, such as sources[0].config.
// The zero Node changes nothing.
func DecodeNode(path, at string, n *yaml.Node, into any) error {
	if n.IsZero() {
		return nil
	}
	if bad := checkNode(n, reflect.TypeOf(into).Elem(), at); bad != nil {
		bad.Path = path
		return bad
	}
	if err := n.Decode(into); err != nil {
		e := translateError(path, err)
		if e.Line == 0 {
			e.Line, e.Message, e.Fix = n.Line, at+": "+err.Error(), "correct the value"
		}
		return e
	}
	return nil
}

// parseDocument returns the file's only document, or nil when there is none.
func parseDocument(path string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, translateError(path, err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Error{Path: path, Line: max(more.Line, 1), Message: "there is more than one document",
			Fix: "remove the line --- and what follows"}
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

var fromEnv = regexp.MustCompile(`^env\(([A-Za-z_][A-Za-z0-9_]*)\)$`)

// expandEnv puts the environment's values in place of env(NAME).
func expandEnv(n *yaml.Node) *Error {
	for _, child := range n.Content {
		if bad := expandEnv(child); bad != nil {
			return bad
		}
	}
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	m := fromEnv.FindStringSubmatch(n.Value)
	if m == nil {
		return nil
	}
	value, ok := os.LookupEnv(m[1])
	if !ok {
		return &Error{Line: n.Line, Message: "the environment variable " + m[1] + " is not set",
			Fix: "export " + m[1] + "=… before the start, or write the value here"}
	}
	n.Value, n.Tag, n.Style = value, "!!str", yaml.DoubleQuotedStyle
	return nil
}

var atLine = regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`)

// translateError makes an *Error of one of the YAML library's. Values of the wrong
// type never get that far, so that what is left is about the form.
func translateError(path string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		e.Path = path
		return e
	}
	e = &Error{Path: path, Message: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "),
		Fix: "check indentation, colons and quotes around this line"}
	if m := atLine.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Message = "this is not YAML: " + m[2]
	}
	return e
}
