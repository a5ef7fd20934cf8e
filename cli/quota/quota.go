// Package quota has the commands about what tenants may hold and use.
package quota

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
)

// NewCommand is the command quota.
func NewCommand(a *app.App) *cobra.Command {
	show := &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show what a tenant may hold, your own when left out",
		Args: names.OptionalOrganization,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.Organization(a, cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Quota(cmd.Context(), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, quotaView, got)
		},
	}
	return app.NewGroupCommand("quota", "See and set what tenants may hold and use", show, NewSetCommand(a),
		newUsageCommand(a))
}
