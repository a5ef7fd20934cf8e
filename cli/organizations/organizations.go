// Package organizations has the commands about tenants.
package organizations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command orgs.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("orgs", "See and define tenants",
		listing.NewCommand(a, "organizations", organizationView, (*client.Client).Organizations),
		newShowCommand(a), newCreateCommand(a), newDeleteCommand(a))
}
