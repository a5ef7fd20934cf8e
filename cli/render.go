package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/phrase"
)

// The output formats.
const (
	table  = "table"
	wide   = "wide"
	asJSON = "json"
	jsonl  = "jsonl"
	asYAML = "yaml"
	name   = "name"
)

var formats = []string{table, wide, asJSON, jsonl, asYAML, name}

func knownFormat(format string) bool { return slices.Contains(formats, format) }

// column is one column of a table.
type column[T any] struct {
	head  string
	cell  func(T) string
	right bool // numbers
	wide  bool // only shown with -o wide
}

// view is how things of one kind are shown.
type view[T any] struct {
	name    func(T) string
	order   func(x, y T) int // of lists; nil: as the server gives them
	columns []column[T]
}

// showList shows things in the chosen format.
func showList[T any](a *app, cmd *cobra.Command, v view[T], items []T) error {
	w := cmd.OutOrStdout()
	switch a.flags.output {
	case asJSON, asYAML:
		if items == nil {
			items = []T{}
		}
		return a.writeEncoded(w, items)
	case jsonl:
		for _, item := range items {
			if err := a.writeLine(w, item); err != nil {
				return err
			}
		}
		return nil
	case name:
		for _, item := range items {
			_, _ = fmt.Fprintln(w, plainText(v.name(item)))
		}
		return nil
	}
	if len(items) == 0 {
		a.say(cmd, "Nothing to show.")
		return nil
	}
	return a.writeTable(w, v.cellRows(items, a.flags.output == wide), v.columnHeads(a.flags.output == wide))
}

// showOne shows a single thing: all it has, one line each, in the table formats.
func showOne[T any](a *app, cmd *cobra.Command, v view[T], item T) error {
	w := cmd.OutOrStdout()
	switch a.flags.output {
	case asJSON, asYAML:
		return a.writeEncoded(w, item)
	case jsonl:
		return a.writeLine(w, item)
	case name:
		_, err := fmt.Fprintln(w, plainText(v.name(item)))
		return err
	}
	width := 0
	for _, c := range v.columns {
		width = max(width, len(c.head))
	}
	for _, c := range v.columns {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, c.head, plainText(c.cell(item))); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	return nil
}

type head struct {
	text  string
	right bool
}

func (v view[T]) columnHeads(all bool) []head {
	var heads []head
	for _, c := range v.columns {
		if all || !c.wide {
			heads = append(heads, head{c.head, c.right})
		}
	}
	return heads
}

func (v view[T]) cellRows(items []T, all bool) [][]string {
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		var row []string
		for _, c := range v.columns {
			if all || !c.wide {
				row = append(row, c.cell(item))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// writeTable writes a light table without borders, so that columns can be cut by
// other programs.
func (a *app) writeTable(w io.Writer, rows [][]string, heads []head) error {
	t := pretty.NewWriter()
	style := pretty.StyleLight
	style.Options = pretty.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	var configs []pretty.ColumnConfig
	header := make(pretty.Row, len(heads))
	for i, h := range heads {
		header[i] = h.text
		if h.right {
			configs = append(configs, pretty.ColumnConfig{Number: i + 1, Align: text.AlignRight,
				AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(configs)
	if !a.flags.noHeaders {
		t.AppendHeader(header)
	}
	for _, r := range rows {
		row := make(pretty.Row, len(r))
		for i, cell := range r {
			row[i] = plainText(cell)
		}
		t.AppendRow(row)
	}
	for l := range strings.Lines(t.Render()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l, " \n")); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	return nil
}

// formatMoney renders an amount to the cent, as people write it.
func formatMoney(m contract.Money) string {
	v, err := strconv.ParseFloat(firstNonEmpty(m.Amount, "0"), 64)
	switch {
	case err != nil:
		return plainText(m.Amount)
	case v > 0 && v < 0.005:
		return "<$0.01"
	default:
		return "$" + strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// formatDuration renders a duration without needless zeros: 2h, 90m as 1h30m, 45s.
func formatDuration(d time.Duration) string { return phrase.Length(d) }

// formatCount is a number of things, each of which has a name that takes an s.
func formatCount[N ~int | ~int64](n N, noun string) string { return phrase.Count(n, noun) }

func isOrAre[N ~int | ~int64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func formatSeconds(s int64) string { return formatDuration(time.Duration(s) * time.Second) }

// formatTime renders an instant so that --at reads it back; "-" when there is none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func formatPercent(share *float64) string {
	if share == nil {
		return "-"
	}
	return strconv.FormatFloat(*share*100, 'f', 1, 64) + "%"
}

func orDash(s string) string { return firstNonEmpty(s, "-") }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
