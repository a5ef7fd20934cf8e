package pools

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

// newShowCommand is the command pools show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show POOL", Short: "Show one pool", Args: flags.ExactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Pool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := poolsNow(a, cmd, api)
			if err != nil {
				return err
			}
			return output.One(a, cmd, v, got)
		},
	}
}
