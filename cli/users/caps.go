package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newCapsCommand(a *app.App) *cobra.Command {
	var given caps.Flags
	var none bool
	c := &cobra.Command{
		Use: "caps USER", Short: "Cap what all of a person's keys together may book", Args: flags.ExactArgs("USER"),
		Long: `Cap what all of a person's keys together may book.

Caps that you leave out stay as they are. A person without caps needs --max-gpus, --max-per-day, --max-lead ` +
			`and --max-window.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !none && !given.Given(cmd) {
				return exit.UsageErrorf("forewarm users caps --help",
					"there is nothing to change: give a cap, or --none")
			}
			return capUser(a, cmd, args[0], func(now *contract.Caps) (*contract.Caps, error) {
				if none {
					return nil, nil
				}
				return given.Read(cmd, now)
			})
		},
	}
	given.Bind(c.Flags(), "")
	c.Flags().BoolVar(&none, "none", false, "remove the caps")
	for _, one := range caps.All {
		c.MarkFlagsMutuallyExclusive("none", one)
	}
	return c
}

// capUser changes the version of the person that it has just read.
func capUser(a *app.App, cmd *cobra.Command, ref string, change func(*contract.Caps) (*contract.Caps, error)) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	u, err := api.User(cmd.Context(), ref)
	if err != nil {
		return err
	}
	caps, err := change(u.Caps)
	if err != nil {
		return err
	}
	got, err := api.SetUserCaps(a.WithIdempotencyKey(cmd.Context()), u.ID, u.Version, caps)
	if err != nil {
		return err
	}
	return output.One(a, cmd, userView, got)
}
