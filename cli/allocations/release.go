package allocations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/contract"
)

// NewReleaseCommand is the command release.
func NewReleaseCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "release ALLOCATION", Short: "Give GPUs back", Args: flags.ExactArgs("ALLOCATION"),
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.AllocationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			if a.PreviewsOnly() {
				return plans.Make(a, cmd, api, contract.PlanRelease, contract.PlannedRelease{AllocationID: id})
			}
			got, err := api.Release(a.WithIdempotencyKey(cmd.Context()), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, View, got)
		},
	}
}
