// Package pools has the commands about pools: kinds of capacity.
package pools

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/listing"
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
	show := &cobra.Command{
		Use: "show POOL", Short: "Show one pool", Args: flags.ExactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Pool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := poolsNow(a, cmd, api)
			if err != nil {
				return err
			}
			return output.One(a, cmd, v, got)
		},
	}
	ls := listing.NewCommand(a, "pools", poolView, (*client.Client).Pools)
	ls.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := a.NewClient()
		if err != nil {
			return err
		}
		v, err := poolsNow(a, cmd, api)
		if err != nil {
			return err
		}
		return listing.Run(a, cmd, v, (*client.Client).Pools, client.Filter{})
	}
	return app.NewGroupCommand("pools", "See and define kinds of capacity", ls, show, newCreateCommand(a),
		NewEditCommand(a), newDeleteCommand(a))
}
