package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
)

// WriteEncoded writes the API's own JSON, or the same as YAML.
func WriteEncoded(a *app.App, w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if a.Filter != nil {
		return a.Filter.Write(w, buf.Bytes())
	}
	if a.Flags.Output == YAML {
		return writeYAML(w, format.EscapeYAML(buf.String()))
	}
	_, err := io.WriteString(w, format.EscapeJSON(buf.String()))
	return err
}

// writeYAML writes JSON as YAML. YAML does not take control characters as they
// are, so they come escaped.
func writeYAML(w io.Writer, text string) error {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	blockStyle(&node)
	var buf bytes.Buffer
	out := yaml.NewEncoder(&buf)
	out.SetIndent(2)
	if err := out.Encode(&node); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err := io.WriteString(w, format.EscapeYAML(buf.String()))
	return err
}

// blockStyle undoes the flow style that JSON gives its YAML. What steers a
// terminal stays in quotes, in which it can be escaped.
func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	if n.Kind == yaml.ScalarNode && format.PlainLines(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// writeLine writes one JSON value as a line, or what --jq makes of it.
func writeLine(a *app.App, w io.Writer, v any) error {
	if a.Filter != nil {
		return WriteEncoded(a, w, v)
	}
	return WriteJSONLine(w, v)
}

// WriteJSONLine writes one JSON value as a line.
func WriteJSONLine(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err := io.WriteString(w, format.EscapeJSON(buf.String()))
	return err
}
