package schedules

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
)

func newDeleteCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "delete SCHEDULE", Short: "End a schedule", Args: flags.ExactArgs("SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if _, err := api.Schedule(cmd.Context(), args[0]); err != nil { // nobody is asked about what is not there
				return err
			}
			if err := a.Confirm(cmd, "Delete schedule "+args[0]); err != nil {
				return err
			}
			got, err := api.DeleteSchedule(a.WithIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			if got.Cancelled != nil {
				a.Say(cmd, "Deleted %s, and cancelled %s.", args[0], format.Count(*got.Cancelled, "reservation"))
			}
			return nil
		},
	}
}
