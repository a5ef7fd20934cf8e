// Package reservations has the commands about reservations: reserve, and
// reservations.
package reservations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command reservations.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("reservations", "See and use reservations",
		listing.NewBookingsCommand(a, "reservations", View, (*client.Client).Reservations), newShowCommand(a),
		NewCancelCommand(a), NewClaimCommand(a))
}
