package pools

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
)

func newDeleteCommand(a *app.App) *cobra.Command {
	return app.NewDeleteCommand(a, "POOL", "Delete an empty pool; its history stays (operators)",
		"pools delete spare --yes",
		func(cmd *cobra.Command, api *client.Client, ref string) (string, string, error) {
			p, err := api.Pool(cmd.Context(), ref)
			return p.ID, fmt.Sprintf("pool %s (%s, up to %s of %s)", p.Name, p.Model, format.Count(p.MaxNodes, "node"),
				format.Count(p.GPUsPerNode, "GPU")), err
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeletePool(a.WithIdempotencyKey(cmd.Context()), id)
		})
}
