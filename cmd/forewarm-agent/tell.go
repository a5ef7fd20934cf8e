package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/core/phrase"
)

// describeReport says in one line what a step expects, what it keeps warm and why, and
// what became of it.
func describeReport(r agent.Report) string {
	parts := []string{describeExpectation(r), cmp.Or(r.Why, "keeps nothing warm")}
	if r.Sent {
		parts = append(parts, describeOutcome(r))
	} else {
		parts = append(parts, fmt.Sprintf("%d windows, not sent", len(r.Plan.Windows)))
	}
	if r.Closed > 0 {
		parts = append(parts, describeScores(r))
	}
	if r.Late > 0 {
		parts = append(parts, fmt.Sprintf("%d rows came too late to count", r.Late))
	}
	return strings.Join(parts, "; ")
}

// describeScores says how the forecasts have met what happened, as mean log losses: the
// lower, the better.
func describeScores(r agent.Report) string {
	s := r.Scores
	text := fmt.Sprintf("%s scored, %d open, mean log loss of %d by statistics %.2f",
		phrase.Count(r.Closed, "forecast"), s.Open, s.Statistics.N, s.Statistics.LogLoss)
	if s.LLM.N > 0 {
		text += fmt.Sprintf(", of %d with the model's evidence %.2f instead of %.2f", s.LLM.N, s.LLM.LogLoss,
			s.Without.LogLoss)
	}
	return text
}

// describeSpent says what the customer's own model has cost today.
func describeSpent(spent llm.Caps) string {
	return fmt.Sprintf("the model was asked %s today, for %s (%s)", phrase.Count(int(spent.Calls), "time"),
		phrase.Count(int(spent.Tokens), "token"), spent.Cost)
}

func describeExpectation(r agent.Report) string {
	if len(r.Choices) == 0 {
		return "expects nothing"
	}
	w := r.Choices[0].Window
	s := w.Forecast.Summary()
	return fmt.Sprintf("expects %d (%d–%d) GPUs %s–%s by %s", s.P50, s.P10, s.P90, w.Start.UTC().Format("15:04"),
		w.End.UTC().Format("15:04Z"), w.Source)
}

func describeOutcome(r agent.Report) string {
	kept, placed, refused := 0, 0, 0
	why := map[string]bool{}
	var reasons []string
	for _, w := range r.Outcome.Windows {
		kept += w.Kept
		placed += w.Placed
		if len(w.Blockers) > 0 {
			refused++
		}
		for _, b := range w.Blockers {
			if !why[b.Code] {
				why[b.Code] = true
				reasons = append(reasons, b.Code)
			}
		}
	}
	text := fmt.Sprintf("placed %d, kept %d, refused %d", placed, kept, refused)
	if len(reasons) > 0 {
		text += " (" + strings.Join(reasons, ", ") + ")"
	}
	return text
}
