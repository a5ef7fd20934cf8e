package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// newListCommand is the command users list.
func newListCommand(a *app.App) *cobra.Command {
	var f client.Filter
	c := listing.NewCommand(a, "users", userView, (*client.Client).Users)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return listing.Run(a, cmd, userView, (*client.Client).Users, f)
	}
	c.Flags().StringVar(&f.Organization, "org", "", "only those of this organization (operators)")
	return c
}
