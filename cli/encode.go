package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	yaml "go.yaml.in/yaml/v3"
)

// writeEncoded writes the API's own JSON, or the same as YAML.
func (a *app) writeEncoded(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if a.filter != nil {
		return a.filter.writeResults(w, buf.Bytes())
	}
	if a.flags.output == asYAML {
		return writeYAML(w, yamlEscapes(buf.String()))
	}
	_, err := io.WriteString(w, jsonEscapes(buf.String()))
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
	_, err := io.WriteString(w, yamlEscapes(buf.String()))
	return err
}

// blockStyle undoes the flow style that JSON gives its YAML. What steers a
// terminal stays in quotes, in which it can be escaped.
func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	if n.Kind == yaml.ScalarNode && plainLines(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// writeLine writes one JSON value as a line, or what --jq makes of it.
func (a *app) writeLine(w io.Writer, v any) error {
	if a.filter != nil {
		return a.writeEncoded(w, v)
	}
	return writeJSONLine(w, v)
}

// writeJSONLine writes one JSON value as a line.
func writeJSONLine(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err := io.WriteString(w, jsonEscapes(buf.String()))
	return err
}
