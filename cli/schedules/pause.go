package schedules

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

func newPauseCommand(a *app.App, use, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use: use + " SCHEDULE", Short: short, Args: flags.ExactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.PauseSchedule(a.WithIdempotencyKey(cmd.Context()), args[0], paused)
			if err != nil {
				return err
			}
			return output.One(a, cmd, View, got)
		},
	}
}
