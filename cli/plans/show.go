package plans

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
)

// newShowCommand is the command plan show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show PLAN", Short: "Show a plan again", Args: flags.ExactArgs("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Plan(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return Show(a, cmd, got)
		},
	}
}
