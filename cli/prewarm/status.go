package prewarm

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
)

// newStatusCommand is the command prewarm status.
func newStatusCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether speculative reservations are warmed", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Prewarm(cmd.Context())
			if err != nil {
				return err
			}
			return showPrewarm(a, cmd, got)
		},
	}
}
