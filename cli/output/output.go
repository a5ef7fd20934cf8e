// Package output shows the answers of commands: as tables, or as JSON, JSON
// lines, YAML or names.
package output

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
)

// The output formats.
const (
	Table     = "table"
	Wide      = "wide"
	JSON      = "json"
	JSONLines = "jsonl"
	YAML      = "yaml"
	Name      = "name"
)

// Formats are what --output knows.
var Formats = []string{Table, Wide, JSON, JSONLines, YAML, Name}

// IsFormat reports whether --output knows a format.
func IsFormat(format string) bool { return slices.Contains(Formats, format) }

// Column is one column of a table.
type Column[T any] struct {
	Head  string
	Cell  func(T) string
	Right bool // numbers
	Wide  bool // only shown with -o wide
}

// View is how things of one kind are shown.
type View[T any] struct {
	Name    func(T) string
	Order   func(x, y T) int // of lists; nil: as the server gives them
	Columns []Column[T]
}

// List shows things in the chosen format.
func List[T any](a *app.App, cmd *cobra.Command, v View[T], items []T) error {
	w := cmd.OutOrStdout()
	switch a.Flags.Output {
	case JSON, YAML:
		if items == nil {
			items = []T{}
		}
		return WriteEncoded(a, w, items)
	case JSONLines:
		for _, item := range items {
			if err := writeLine(a, w, item); err != nil {
				return err
			}
		}
		return nil
	case Name:
		for _, item := range items {
			_, _ = fmt.Fprintln(w, format.Plain(v.Name(item)))
		}
		return nil
	}
	if len(items) == 0 {
		a.Say(cmd, "Nothing to show.")
		return nil
	}
	rows := v.cellRows(items, a.Flags.Output == Wide)
	if a.Flags.Output == Wide && a.Terminal(w) {
		clipSentences(rows)
	}
	return writeTable(a, w, rows, v.columnHeads(a.Flags.Output == Wide))
}

// One shows a single thing: all it has, one line each, in the table formats.
func One[T any](a *app.App, cmd *cobra.Command, v View[T], item T) error {
	w := cmd.OutOrStdout()
	switch a.Flags.Output {
	case JSON, YAML:
		return WriteEncoded(a, w, item)
	case JSONLines:
		return writeLine(a, w, item)
	case Name:
		_, err := fmt.Fprintln(w, format.Plain(v.Name(item)))
		return err
	}
	width := 0
	for _, c := range v.Columns {
		width = max(width, len(c.Head))
	}
	for _, c := range v.Columns {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, c.Head, format.Plain(c.Cell(item))); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	return nil
}
