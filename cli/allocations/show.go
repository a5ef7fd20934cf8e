package allocations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
)

// newShowCommand is the command allocations show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show ALLOCATION", Short: "Show one allocation", Args: flags.ExactArgs("ALLOCATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.AllocationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.Allocation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return output.One(a, cmd, showView, got)
		},
	}
}
