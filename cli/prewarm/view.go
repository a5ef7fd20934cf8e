package prewarm

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var pauseView = output.View[contract.PrewarmPause]{
	Name: func(x contract.PrewarmPause) string { return pausedWhom(x) },
	Columns: []output.Column[contract.PrewarmPause]{
		{Head: "PAUSED", Cell: pausedWhom},
		{Head: "SINCE", Cell: func(x contract.PrewarmPause) string { return format.Time(x.PausedAt) }},
		{Head: "UNTIL", Cell: func(x contract.PrewarmPause) string {
			if x.Until.IsZero() {
				return "it is resumed"
			}
			return format.Time(x.Until)
		}},
		{Head: "REASON", Cell: func(x contract.PrewarmPause) string { return format.OrDash(x.Reason) }},
		{Head: "BY",
			Cell: func(x contract.PrewarmPause) string { return format.OrDash(cmp.Or(x.PausedByName, x.PausedBy)) },
			Wide: true},
	},
}

func prewarmState(x contract.Prewarm) string {
	if x.Paused {
		return "paused"
	}
	return "running"
}

// PausedFor says for whom, the caller among them, nothing speculative is warmed; empty:
// it is.
func PausedFor(x contract.Prewarm) string {
	switch {
	case !x.Paused:
		return ""
	case slices.ContainsFunc(x.Pauses, func(p contract.PrewarmPause) bool { return p.Installation }):
		return "pre-warming paused for everybody"
	default:
		return "pre-warming paused for your organization"
	}
}

// PauseText says for whom nothing speculative is warmed, until when, and why.
func PauseText(x contract.PrewarmPause) string {
	text := "Pre-warming is paused for " + pausedWhom(x)
	if !x.Until.IsZero() {
		text += " until " + format.Time(x.Until)
	}
	if x.Reason != "" {
		text += ": " + x.Reason
	}
	return text
}

func pausedWhom(x contract.PrewarmPause) string {
	if x.Installation {
		return "everybody"
	}
	return cmp.Or(x.OrganizationName, x.OrganizationID)
}
