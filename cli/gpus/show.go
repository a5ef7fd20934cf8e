package gpus

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

// newShowCommand is the command gpus show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show GPU", Short: "Show one GPU, by its UUID", Args: flags.ExactArgs("GPU"),
		Example: "  forewarm gpus show GPU-SIM-5f1c3c2e-8d0b-4c0e-9b7a-2f6d1e4a7b90",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.GPU(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return output.One(a, cmd, detailView, got)
		},
	}
}
