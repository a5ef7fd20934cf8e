// Package decisions shows decisions and recomputes them.
package decisions

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var decisionView = output.View[contract.Decision]{
	Name: func(x contract.Decision) string { return x.ID },
	Columns: []output.Column[contract.Decision]{
		{Head: "ID", Cell: func(x contract.Decision) string { return x.ID }},
		{Head: "TIME", Cell: func(x contract.Decision) string { return format.Time(x.Time) }},
		{Head: "KIND", Cell: func(x contract.Decision) string { return x.Kind }},
		{Head: "EVENT", Cell: func(x contract.Decision) string { return x.Event }},
		{Head: "SUBJECT", Cell: func(x contract.Decision) string { return x.Subject }},
		{Head: "POOL", Cell: func(x contract.Decision) string { return format.OrDash(cmp.Or(x.PoolName, x.PoolID)) },
			Wide: true},
		{Head: "ACTOR", Cell: func(x contract.Decision) string { return format.OrDash(cmp.Or(x.ActorName, x.Actor)) },
			Wide: true},
		{Head: "ENGINE", Cell: func(x contract.Decision) string { return format.OrDash(x.Engine) }, Wide: true},
		{Head: "REASON", Cell: func(x contract.Decision) string { return format.OrDash(x.Reason) }},
		{Head: "MESSAGE", Cell: func(x contract.Decision) string { return format.OrDash(x.Message) }},
	},
}

// NewCommand is the command decisions.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("decisions", "See decisions and recompute them", newListCommand(a), newShowCommand(a),
		newReplayCommand(a))
}

func fetchDecision(a *app.App, cmd *cobra.Command, id string) (contract.Decision, error) {
	api, err := a.NewClient()
	if err != nil {
		return contract.Decision{}, err
	}
	return api.Decision(cmd.Context(), id)
}
