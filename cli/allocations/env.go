package allocations

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/core/access"
)

// NewEnvCommand is the command env.
func NewEnvCommand(a *app.App) *cobra.Command {
	var rank int
	c := &cobra.Command{
		Use: "env ALLOCATION", Short: "Print the environment of work on an allocation's GPUs",
		Args: flags.ExactArgs("ALLOCATION"),
		Long: `Print the environment of work on an allocation's GPUs, as lines that a shell evaluates:

    eval "$(forewarm env otter)"

The variables are those that CUDA, NVIDIA's container runtime, torchrun and launchers like it read. -o json prints them
as an object.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := findSeat(a, cmd, args[0], rank)
			if err != nil {
				return err
			}
			env := at.node.Environment
			return output.Text(a, cmd, at.of.ID, env, func(w io.Writer) {
				for _, name := range slices.Sorted(maps.Keys(env)) {
					_, _ = fmt.Fprintf(w, "export %s=%s\n", name, access.SingleQuote(env[name]))
				}
			})
		},
	}
	c.Flags().IntVar(&rank, "node", 0, "the rank of the node")
	return c
}
