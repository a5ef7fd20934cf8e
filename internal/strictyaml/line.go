package strictyaml

import (
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Wrong returns the error of a value that has the right type and still cannot
// be used. key names it with dots, list items by number: sources.0.kind. When the
// file does not mention it, the line is that of the nearest group around it.
func Wrong(path string, data []byte, key, message, fix string) *Error {
	e := &Error{Path: path, Message: key + ": " + message, Fix: fix}
	root, err := parseDocument(path, data)
	if err != nil || root == nil {
		return e
	}
	e.Line = lineOf(root, strings.Split(key, "."))
	return e
}

func lineOf(n *yaml.Node, keys []string) int {
	line := n.Line
	for _, key := range keys {
		var next *yaml.Node
		switch i, err := strconv.Atoi(key); {
		case n.Kind == yaml.SequenceNode && err == nil && i >= 0 && i < len(n.Content):
			next, line = n.Content[i], n.Content[i].Line
		case n.Kind == yaml.MappingNode:
			at := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
			if at < 0 || at%2 != 0 {
				return line
			}
			next, line = n.Content[at+1], n.Content[at].Line
		default:
			return line
		}
		n = next
	}
	return line
}
