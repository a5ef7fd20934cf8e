// Package show writes a backtest's report for people: as text, as JSON and as one
// HTML page that needs nothing else. The same report gives the same bytes.
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/forewarm/forewarm/agent/backtest"
)

// JSON writes the report with two spaces of indent.
func JSON(w io.Writer, r backtest.Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// Text writes the report as tables and sentences, with the frontier if asked for.
func Text(w io.Writer, r backtest.Report, frontier bool) error {
	var b strings.Builder
	fmt.Fprintln(&b, tableHeading(r))
	for _, line := range leftOut(r.History) {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b)
	renderTable(&b, policyHeads(r), policyRows(r))
	for _, line := range listNotes(r) {
		fmt.Fprintln(&b, line)
	}
	if line := breakEven(r); line != "" {
		fmt.Fprintf(&b, "\nBreak-even: %s\n", line)
	}
	if len(r.WeakSpots) > 0 {
		fmt.Fprintf(&b, "\nWhere waiting remains with Forewarm\n")
		renderTable(&b, spotHeads(), spotRows(r))
	}
	if frontier {
		fmt.Fprintf(&b, "\nWhat more idling would buy\n")
		renderTable(&b, budgetHeads(r), budgetRows(r))
		fmt.Fprintln(&b)
		renderTable(&b, frontierHeads(), frontierRows(r))
	}
	fmt.Fprintln(&b)
	for _, line := range r.Advice.Text {
		fmt.Fprintln(&b, line)
	}
	text := strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return replaceControl(r)
	}, b.String())
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// renderTable writes a light table without borders, the first column to the left and
// the others to the right.
func renderTable(b *strings.Builder, heads []string, rows [][]string) {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	var configs []table.ColumnConfig
	for i := 1; i < len(heads); i++ {
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(toCells(heads))
	for _, r := range rows {
		t.AppendRow(toCells(r))
	}
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
}

func toCells(texts []string) table.Row {
	row := make(table.Row, len(texts))
	for i, t := range texts {
		row[i] = strings.Map(replaceControl, t)
	}
	return row
}

// replaceControl replaces the characters that steer a terminal.
func replaceControl(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return ' '
	}
	return r
}
