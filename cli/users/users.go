// Package users has the commands about people.
package users

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
)

// NewCommand is the command users.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("users", "See and create users",
		newListCommand(a), newCreateCommand(a), newCapsCommand(a),
		newDeleteCommand(a))
}
