// Package pools has the commands about pools.
package pools

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/prewarm"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// poolsNow is how pools are shown, with a pause of pre-warming, which is no pool's.
func poolsNow(a *app.App, cmd *cobra.Command, api *client.Client) (output.View[contract.Pool], error) {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return poolView, nil
	}
	now, err := api.Prewarm(cmd.Context())
	v := poolView
	v.Columns = slices.Clone(v.Columns)
	for i := range v.Columns {
		if v.Columns[i].Head == "STATE" {
			v.Columns[i].Cell = func(x contract.Pool) string { return State(x, prewarm.PausedFor(now)) }
		}
	}
	return v, err
}

// NewCommand is the command pools.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("pools", "See and define pools", newListCommand(a), newShowCommand(a),
		newCreateCommand(a),
		NewEditCommand(a), newLabelCommand(a), newTaintCommand(a), newDeleteCommand(a))
}
