package reservations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/contract"
)

// NewCancelCommand is the command reservations cancel.
func NewCancelCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "cancel RESERVATION", Short: "Cancel a reservation", Args: flags.ExactArgs("RESERVATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.ReservationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			if a.PreviewsOnly() {
				return plans.Make(a, cmd, api, contract.PlanCancel, contract.PlannedCancel{ReservationID: id})
			}
			got, err := api.CancelReservation(a.WithIdempotencyKey(cmd.Context()), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, View, got)
		},
	}
}
