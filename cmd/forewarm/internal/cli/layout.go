package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/contract"
)

// layoutFlags are how GPUs are to lie on nodes.
func layoutFlags(f *pflag.FlagSet, l *contract.Layout) {
	f.IntVar(&l.Nodes, "nodes", 0, "on so many nodes (default as few as can be)")
	f.IntVar(&l.GPUsPerNode, "gpus-per-node", 0, "so many on each node; the last may have fewer")
	f.StringVar(&l.Spread, "spread", "", "any, or even: as many on each node as on any other (default any)")
}

// needGPUs asks for the number of GPUs, which a layout may give.
func needGPUs(cmd *cobra.Command) error {
	if cmd.Flags().Changed("nodes") && cmd.Flags().Changed("gpus-per-node") {
		return nil
	}
	return need(cmd, "gpus")
}

// laidOut reports whether the command says how GPUs are to lie on nodes.
func laidOut(cmd *cobra.Command) bool {
	for _, flag := range []string{"nodes", "gpus-per-node", "spread"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			return true
		}
	}
	return false
}
