package reservations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/allocations"
	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewClaimCommand is the command reservations claim.
func NewClaimCommand(a *app.App) *cobra.Command {
	var lease flags.Span
	var in contract.Claim
	c := &cobra.Command{
		Use: "claim RESERVATION", Short: "Turn a reservation into GPUs held now", Args: flags.ExactArgs("RESERVATION"),
		Long: `Turn a reservation into GPUs held now. The earliest time is the pool's lead before the window: the 95th
percentile of the pool's boot times, plus a guard.

The lease ends with the window. --for sets another length, at most that of the window; to hold longer, extend it.`,
		Annotations: map[string]string{app.Waits: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			in.LeaseSeconds = lease.Seconds()
			api, id, err := names.ReservationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			if a.PreviewsOnly() {
				return plans.Make(a, cmd, api, contract.PlanClaim, contract.PlannedClaim{ReservationID: id, Claim: in})
			}
			if err := allocations.AgreeToCost(a, cmd, func(ctx context.Context) (contract.Allocation, error) {
				return api.Claim(ctx, id, in, client.Options{DryRun: true})
			}); err != nil {
				return err
			}
			got, err := api.Claim(a.WithIdempotencyKey(cmd.Context()), id, in, client.Options{})
			if err != nil {
				return err
			}
			return allocations.ShowAllocated(a, cmd, api, got)
		},
	}
	c.Flags().Var(&lease, "for", "length of the lease (default to the end of the window)")
	c.Flags().StringVar(&in.Name, "name", "", "what to call it (default as the reservation)")
	return c
}
