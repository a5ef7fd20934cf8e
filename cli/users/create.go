package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// newCreateCommand is the command users create.
func newCreateCommand(a *app.App) *cobra.Command {
	var in contract.UserCreate
	c := &cobra.Command{
		Use: "create EMAIL --role ROLE", Short: "Make a user (admins)", Args: flags.ExactArgs("EMAIL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Need(cmd, "role"); err != nil {
				return err
			}
			in.Email = args[0]
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.CreateUser(a.WithIdempotencyKey(cmd.Context()), in)
			if err != nil {
				return err
			}
			return output.One(a, cmd, userView, got)
		},
	}
	c.Flags().StringVar(&in.Role, "role", "", "viewer, member or admin")
	c.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	return c
}
