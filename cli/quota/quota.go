// Package quota has the commands about the limits and the usage of tenants.
package quota

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
)

// NewCommand is the command quota.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("quota", "See and set the limits of tenants", newShowCommand(a),
		NewSetCommand(a),
		newUsageCommand(a))
}
