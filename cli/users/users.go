// Package users has the commands about people.
package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command users.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("users", "See and create users",
		listing.NewCommand(a, "users", userView, (*client.Client).Users), newCreateCommand(a), newCapsCommand(a),
		newDeleteCommand(a))
}
