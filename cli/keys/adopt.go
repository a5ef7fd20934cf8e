package keys

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

// newAdoptCommand keeps a key from ending with the one that made it.
func newAdoptCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "adopt KEY", Short: "Make a key independent: it no longer ends with the key that made it (operators)",
		Args: flags.ExactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if err := keyIsThere(a, cmd, api, args[0]); err != nil {
				return err
			}
			got, err := api.AdoptKey(a.WithIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			return output.One(a, cmd, keyView, got)
		},
	}
}
