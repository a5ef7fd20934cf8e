package output

import (
	"fmt"
	"io"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/forewarm/forewarm/cli/format"
)

type head struct {
	text  string
	right bool
}

func (v View[T]) columnHeads(all bool) []head {
	var heads []head
	for _, c := range v.Columns {
		if all || !c.Wide {
			heads = append(heads, head{c.Head, c.Right})
		}
	}
	return heads
}

func headTexts(heads []head) []string {
	var texts []string
	for _, h := range heads {
		texts = append(texts, h.text)
	}
	return texts
}

func (v View[T]) cellRows(items []T, all bool) [][]string {
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		var row []string
		for _, c := range v.Columns {
			if all || !c.Wide {
				row = append(row, c.Cell(item))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// widestSentence is how wide a sentence is in a wide table on a terminal.
const widestSentence = 40

// clipSentences cuts sentences, which would push what stands behind them off the screen: who shows one thing sees them
// whole. What has no blank, such as an id, is to be copied, and stays.
func clipSentences(rows [][]string) {
	for _, row := range rows {
		for i, cell := range row {
			if all := []rune(cell); len(all) > widestSentence && strings.Contains(cell, " ") {
				row[i] = strings.TrimRight(string(all[:widestSentence-1]), " ") + "…"
			}
		}
	}
}

// widthsOf are the widths that columns need for their rows, no less than they were.
func widthsOf(rows [][]string, were []int) []int {
	widths := make([]int, len(rows[0]))
	copy(widths, were)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(format.Plain(row[i])))
		}
	}
	return widths
}

// writeTable writes a light table without borders, so that columns can be cut by
// other programs.
func writeTable(w io.Writer, rows [][]string, heads []head, widths []int, hasHeader bool) error {
	t := pretty.NewWriter()
	style := pretty.StyleLight
	style.Options = pretty.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	var configs []pretty.ColumnConfig
	header := make(pretty.Row, len(heads))
	for i, h := range heads {
		header[i] = h.text
		c := pretty.ColumnConfig{Number: i + 1, WidthMin: widths[i]}
		if h.right {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		configs = append(configs, c)
	}
	t.SetColumnConfigs(configs)
	if hasHeader {
		t.AppendHeader(header)
	}
	for _, r := range rows {
		row := make(pretty.Row, len(r))
		for i, cell := range r {
			row[i] = format.Plain(cell)
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
