package reservations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
)

func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show RESERVATION", Short: "Show one reservation", Args: flags.ExactArgs("RESERVATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.ReservationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.Reservation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, View, got)
		},
	}
}
