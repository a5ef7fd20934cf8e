package show

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html and page.css
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/forewarm/forewarm/agent/backtest"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// renderPage is what page.html is filled with.
type renderPage struct {
	Policy      string // of content security
	Style       template.CSS
	Title, Lead string
	LeftOut     []string
	Advice      backtest.Advice
	BreakEven   string
	Policies    grid
	Frontier    grid
	Budgets     grid
	Spots       grid
	Said        grid
	Week        grid
	Plots       struct{ Frontier, Calibration, Week template.HTML }
	Terms       []term
}

// grid is a table.
type grid struct {
	Heads []string
	Rows  [][]string
}

// HTML writes the report as one page that loads nothing and runs no script: its
// content security policy forbids both.
func HTML(w io.Writer, r backtest.Report) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("reading the page's template: %w", err)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	p := renderPage{
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" +
			base64.StdEncoding.EncodeToString(sum[:]) + "'",
		Style: template.CSS(pageStyle), Title: "Forewarm backtest", Lead: tableHeading(r), LeftOut: leftOut(r.History),
		Advice:    r.Advice,
		BreakEven: breakEven(r), Policies: grid{policyHeads(r), policyRows(r)},
		Frontier: grid{frontierHeads(), frontierRows(r)}, Budgets: grid{budgetHeads(r), budgetRows(r)},
		Spots: grid{spotHeads(), spotRows(r)}, Said: saidGrid(r), Week: weekGrid(r), Terms: listTerms(r),
	}
	p.Plots.Frontier, p.Plots.Calibration, p.Plots.Week = frontierChart(r), calibrationChart(r), weekChart(r)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("filling the page: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func saidGrid(r backtest.Report) grid {
	g := grid{Heads: []string{"said", "seen", "n"}}
	for _, c := range r.Calibration {
		g.Rows = append(g.Rows, []string{fmt.Sprintf("%.0f%%", 100*c.Stated), fmt.Sprintf("%.0f%%", 100*c.Seen),
			formatCount(c.N)})
	}
	return g
}

// weekGrid says in numbers what the chart of the week says in shades.
func weekGrid(r backtest.Report) grid {
	g := grid{Heads: []string{"hours of waiting"}}
	for hour := range 24 {
		g.Heads = append(g.Heads, fmt.Sprintf("%02d", hour))
	}
	for i, day := range r.Week {
		row := []string{backtest.Weekdays()[i]}
		for _, h := range day {
			row = append(row, formatNumber(&h.WaitHours))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
