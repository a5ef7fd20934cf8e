package quota

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
)

// newShowCommand is the command quota show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show the limits of a tenant (default your own)",
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
}
