// Package output shows the answers of commands: as tables, or as JSON, JSON
// lines, YAML or names.
package output

import (
	"fmt"
	"iter"
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
	return (&list[T]{app: a, cmd: cmd, view: v}).show(items)
}

// part is how many things of a long list are shown at once.
const part = 500

// Stream shows things as they come, part by part, so that whoever has read enough of them has no more fetched. What has
// one beginning and one end, as JSON has, is shown when all are there.
func Stream[T any](a *app.App, cmd *cobra.Command, v View[T], all iter.Seq2[T, error]) error {
	l := &list[T]{app: a, cmd: cmd, view: v}
	whole := v.Order != nil || a.Flags.Output == JSON || a.Flags.Output == YAML
	var items []T
	for item, err := range all {
		if err != nil {
			return err
		}
		if items = append(items, item); len(items) < part || whole {
			continue
		}
		if err := l.show(items); err != nil {
			return err
		}
		items = items[:0]
	}
	if v.Order != nil {
		slices.SortStableFunc(items, v.Order)
	}
	if len(items) == 0 && l.begun {
		return nil
	}
	return l.show(items)
}

// list shows things of one kind, in one part or more.
type list[T any] struct {
	app    *app.App
	cmd    *cobra.Command
	view   View[T]
	begun  bool
	widths []int // of the columns of the parts before
}

func (l *list[T]) show(items []T) error {
	a, w := l.app, l.cmd.OutOrStdout()
	switch a.Flags.Output {
	case JSON, YAML:
		if items == nil {
			items = []T{}
		}
		return WriteEncoded(a, w, items)
	case JSONLines:
		l.begun = true
		for _, item := range items {
			if err := writeLine(a, w, item); err != nil {
				return err
			}
		}
		return nil
	case Name:
		l.begun = true
		for _, item := range items {
			if _, err := fmt.Fprintln(w, format.Plain(l.view.Name(item))); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		return nil
	}
	if len(items) == 0 {
		a.Say(l.cmd, "Nothing to show.")
		return nil
	}
	rows := l.view.cellRows(items, a.Flags.Output == Wide)
	if a.Flags.Output == Wide && a.Terminal(w) {
		clipSentences(rows)
	}
	heads := l.view.columnHeads(a.Flags.Output == Wide)
	l.widths = widthsOf(rows, l.widths)
	hasHeader := !a.Flags.NoHeaders && !l.begun
	if hasHeader {
		l.widths = widthsOf([][]string{headTexts(heads)}, l.widths)
	}
	l.begun = true
	return writeTable(w, rows, heads, l.widths, hasHeader)
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
