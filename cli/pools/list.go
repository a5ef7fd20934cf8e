package pools

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// newListCommand is the command pools list.
func newListCommand(a *app.App) *cobra.Command {
	c := listing.NewCommand(a, "pools", poolView, (*client.Client).Pools)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
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
	return c
}
