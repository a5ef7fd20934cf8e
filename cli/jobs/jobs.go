// Package jobs has the commands about work that waits for its GPUs and then runs: run, queue and
// jobs.
package jobs

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
)

// NewCommand is the command jobs.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("jobs", "See jobs and what they write, and end, hold or repeat them",
		newListCommand(a), newShowCommand(a), newLogsCommand(a), newEventsCommand(a), newCancelCommand(a),
		newRequeueCommand(a), newHoldCommand(a), newReleaseCommand(a), newEditCommand(a), newExplainCommand(a))
}
