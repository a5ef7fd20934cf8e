// Package schedules has the commands about reservations that recur.
package schedules

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command schedules.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("schedules", "See and change recurring reservations",
		listing.NewCommand(a, "schedules", View, (*client.Client).Schedules), newShowCommand(a),
		newPauseCommand(a, "pause", "Stop making reservations until the schedule is resumed", true),
		newPauseCommand(a, "resume", "Make reservations again", false), newDeleteCommand(a))
}
