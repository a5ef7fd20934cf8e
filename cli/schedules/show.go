package schedules

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show SCHEDULE", Short: "Show one schedule, its next dates and the result of each",
		Args: flags.ExactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Schedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := output.One(a, cmd, View, got); err != nil {
				return err
			}
			coming, err := api.Occurrences(cmd.Context(), args[0], time.Time{}, time.Time{})
			if err != nil {
				return err
			}
			SayDates(a, cmd, coming)
			return nil
		},
	}
}
