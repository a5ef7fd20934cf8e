// Package users has the commands about people.
package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command users.
func NewCommand(a *app.App) *cobra.Command {
	var in contract.UserCreate
	create := &cobra.Command{
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
	create.Flags().StringVar(&in.Role, "role", "", "viewer, member or admin")
	create.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	return app.NewGroupCommand("users", "See and make users",
		listing.NewCommand(a, "users", userView, (*client.Client).Users), create, newCapsCommand(a),
		newDeleteCommand(a))
}
