package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent/backtest"
	"github.com/forewarm/forewarm/core/phrase"
)

// dash stands for what is not known.
const dash = "–"

// tableHeading says what the table is about.
func tableHeading(r backtest.Report) string {
	h := r.History
	return fmt.Sprintf("Walk-forward over %s GPU jobs, %s to %s (%s): each decision knows only what had happened "+
		"before it.\n"+
		"The first 30 %% of the time is only learned from; %s jobs count.",
		formatCount(h.Jobs), h.From.Format("2006-01-02"), h.To.Format("2006-01-02"), r.Settings.Zone,
		formatCount(h.Scored))
}

// leftOut says what is odd about a history, and what became of rows that did not
// simply count.
func leftOut(h backtest.Past) []string {
	c := h.Rows
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{c.Broken, "broken"}, {c.NeverRan, "never ran"}, {c.NoRunTime, "ended without a run time"},
		{c.TooLarge, "of too many GPUs"}, {c.Repeated, "repeated"}, {c.NoGPU, "job steps or without a GPU"},
		{c.Elsewhere, "not asked for"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", formatCount(int(p.n)), p.what))
		}
	}
	var lines []string
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("Rows left out, of %s: %s.", formatCount(int(c.Rows)),
			strings.Join(parts, ", ")))
	}
	if c.Future > 0 {
		lines = append(lines, fmt.Sprintf("Left out as they begin or end after now: %s, the first of a job submitted at %s "+
			"(%d): is a date or a clock wrong?", phrase.Count(c.Future, "row"), h.FirstFuture.Format(time.RFC3339),
			h.FirstFuture.Unix()))
	}
	if c.StillRuns > 0 {
		lines = append(lines, fmt.Sprintf("Had not ended, and are taken to run to the history's end: %s.",
			formatCount(int(c.StillRuns))))
	}
	if s := h.Silence; s != nil {
		lines = append(lines,
			fmt.Sprintf("No job from %s to %s: is a date wrong? If so, limit the history with --days.",
				s.From.Format("2006-01-02"), s.To.Format("2006-01-02")))
	}
	return lines
}

func policyHeads(r backtest.Report) []string {
	waste := "idle waste"
	if r.Settings.GPUPrice == nil {
		waste += " GPU-h"
	}
	return []string{"policy", "zero-wait", "mean wait", "p95 wait", "hours saved", waste, "overhead", "cost"}
}

func policyRows(r backtest.Report) [][]string {
	rows := make([][]string, len(r.Policies))
	for i, p := range r.Policies {
		waste := formatNumber(p.Waste)
		cost := formatNumber(p.Cost)
		if price := r.Settings.GPUPrice; price != nil {
			waste, cost = formatMoney(p.WasteUSD), formatMoney(multiply(p.Cost, *price))
		}
		saved := p.Saved
		if p.Policy == backtest.Reactive {
			saved = nil
		}
		rows[i] = []string{p.Label, formatPercent(p.ZeroWait), formatWait(p.Mean), formatWait(p.P95),
			withUnit(formatNumber(saved), " h"), waste,
			formatPercent(p.Overhead), cost}
	}
	return rows
}

func frontierHeads() []string {
	return []string{"policy", "setting", "overhead", "mean wait", "zero-wait"}
}

func frontierRows(r backtest.Report) [][]string {
	rows := make([][]string, len(r.Frontier))
	for i, p := range r.Frontier {
		rows[i] = []string{policyName(p.Policy), p.Setting, formatPercent(&p.Overhead), formatWait(&p.Mean),
			formatPercent(&p.ZeroWait)}
	}
	return rows
}

func budgetHeads(r backtest.Report) []string {
	heads := []string{"mean wait at an overhead of"}
	for _, b := range r.Budgets[:min(1, len(r.Budgets))] {
		for _, at := range b.At {
			heads = append(heads, formatPercent(&at.Overhead))
		}
	}
	return heads
}

func budgetRows(r backtest.Report) [][]string {
	var rows [][]string
	for _, b := range r.Budgets {
		row := []string{policyName(b.Policy)}
		for _, at := range b.At {
			row = append(row, formatWait(at.Mean))
		}
		rows = append(rows, row)
	}
	return rows
}

// policyNames are the names of policies in one or two words.
var policyNames = map[string]string{
	backtest.Reactive: "nothing kept", backtest.Schedule: "09–18 schedule", backtest.KeepAlive: "keep-alive",
	backtest.LastWeek: "last week", backtest.Forewarm: "forewarm", backtest.Foresight: "perfect foresight",
}

func policyName(policy string) string { return policyNames[policy] }

// breakEven says from which price of waiting Forewarm is worth it.
func breakEven(r backtest.Report) string {
	b := r.BreakEven
	if b == nil {
		return ""
	}
	against := policyName(b.Against)
	switch b.Worth {
	case backtest.Always:
		return fmt.Sprintf("worth it at any price of waiting: it waits no longer and wastes no more than the best "+
			"simpler rule (%s).", against)
	case backtest.Never:
		return fmt.Sprintf("not worth it at any price of waiting: the best simpler rule (%s) waits no longer and "+
			"wastes no more.", against)
	}
	price := fmt.Sprintf("%s idle GPU-hours", formatNumber(b.WaitWorth))
	if b.USD != nil {
		price = formatMoney(b.USD)
	}
	word := "more"
	if b.Worth == backtest.Below {
		word = "less"
	}
	return fmt.Sprintf("worth it while an hour of your waiting costs %s than %s, against the best simpler rule (%s).",
		word, price, against)
}

func spotHeads() []string { return []string{"weak spot", "n", "mean wait", "of what remains"} }

func spotRows(r backtest.Report) [][]string {
	var rows [][]string
	for _, s := range r.WeakSpots {
		rows = append(rows, []string{s.Label, formatCount(s.Jobs), formatWait(&s.Mean), formatPercent(&s.Share)})
	}
	return rows
}

func withUnit(number, unit string) string {
	if number == dash {
		return dash
	}
	return number + unit
}

func multiply(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x * by
	return &y
}

func formatPercent(x *float64) string {
	switch {
	case x == nil:
		return dash
	case math.Abs(*x) < 9.95:
		return strconv.FormatFloat(*x, 'f', 1, 64) + "%"
	default:
		return strconv.FormatFloat(*x, 'f', 0, 64) + "%"
	}
}

// formatWait writes seconds as people do.
func formatWait(x *float64) string {
	switch {
	case x == nil:
		return dash
	case *x == 0:
		return "0s"
	case *x < 9.95:
		return strconv.FormatFloat(*x, 'f', 1, 64) + "s"
	}
	s := int64(math.Round(*x))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	}
}

// formatNumber writes a number with thousands apart, and a digit after the point where
// it is small.
func formatNumber(x *float64) string {
	switch {
	case x == nil:
		return dash
	case math.Abs(*x) < 9.95:
		return strconv.FormatFloat(*x, 'f', 1, 64)
	default:
		return formatCount(int(math.Round(*x)))
	}
}

func formatMoney(x *float64) string {
	switch {
	case x == nil:
		return dash
	case *x > 0 && *x < 0.005:
		return "<$0.01"
	case math.Abs(*x) < 99.995:
		return "$" + strconv.FormatFloat(*x, 'f', 2, 64)
	default:
		return "$" + formatCount(int(math.Round(*x)))
	}
}

// formatCount writes a whole number with thousands apart.
func formatCount(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
