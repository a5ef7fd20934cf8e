// Package allocations has the commands about GPUs that are held now: allocate,
// release, extend, and allocations.
package allocations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
)

// NewCommand is the command allocations.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("allocations", "See the GPUs that are held now",
		listing.NewBookingsCommand(a, "allocations", View, (*client.Client).Allocations), newShowCommand(a))
}
