// Package forecasts shows forecasts and their outcomes.
package forecasts

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/when"
)

// NewCommand is the command forecasts.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("forecasts", "See forecasts and their outcomes", newListCommand(a),
		newShowCommand(a))
}

// parseRange reads two times, either of which may be left out.
func parseRange(a *app.App, cmd *cobra.Command, from, to, zone string) (begin, end time.Time, err error) {
	in, err := a.Zone(cmd, zone)
	if err == nil && from != "" {
		begin, err = when.Parse(from, a.Clock.Now(), in)
		err = when.BlameFlag(cmd, "from", err)
	}
	if err == nil && to != "" {
		end, err = when.Parse(to, a.Clock.Now(), in)
		err = when.BlameFlag(cmd, "to", err)
	}
	return begin, end, err
}
