// Package organizations has the commands about tenants.
package organizations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command orgs.
func NewCommand(a *app.App) *cobra.Command {
	show := &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show one organization, your own when left out",
		Args: names.OptionalOrganization,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.Organization(a, cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Organization(cmd.Context(), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, organizationView, got)
		},
	}
	return app.NewGroupCommand("orgs", "See and define tenants",
		listing.NewCommand(a, "organizations", organizationView, (*client.Client).Organizations),
		show, newCreateCommand(a), newDeleteCommand(a))
}
