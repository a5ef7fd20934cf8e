package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/contract"
)

// needsFlags are what the pool of a request must have. Memory is given in GiB.
func needsFlags(f *pflag.FlagSet, n *contract.Needs) {
	f.StringVar(&n.Region, "region", "", "only in this region")
	f.Var((*gibibytes)(&n.MinGPUMemoryMiB), "min-gpu-memory", "only GPUs with at least so many GiB of memory")
	f.Var((*gibibytes)(&n.MinNodeMemoryMiB), "min-node-memory",
		"only nodes with at least so many GiB of memory of their own")
}

// gibibytes is a flag that counts GiB and is kept in MiB.
type gibibytes int

func (g *gibibytes) String() string { return strconv.FormatFloat(float64(*g)/1024, 'f', -1, 64) }
func (g *gibibytes) Type() string   { return "GiB" }

func (g *gibibytes) Set(s string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "GiB"), 64)
	if err != nil || !(n*1024 >= 1) || n > 1<<20 {
		return errors.New("is not a number of GiB, such as 40, up to 1048576")
	}
	*g = gibibytes(math.Round(n * 1024))
	return nil
}

// layoutFlags are how GPUs are to lie on nodes.
func layoutFlags(f *pflag.FlagSet, l *contract.Layout) {
	f.IntVar(&l.Nodes, "nodes", 0, "on so many nodes (default as few as can be)")
	f.IntVar(&l.GPUsPerNode, "gpus-per-node", 0, "so many on each node; the last may have fewer")
	f.StringVar(&l.Spread, "spread", "", "any, or even: as many on each node as on any other (default any)")
}

// askedLayout is how GPUs were asked to lie on nodes.
func askedLayout(nodes, perNode int, spread string) string {
	var parts []string
	for _, part := range []struct {
		said bool
		text string
	}{{nodes > 0, formatCount(nodes, "node")}, {perNode > 0, fmt.Sprintf("%d a node", perNode)}, {spread != "", spread}} {
		if part.said {
			parts = append(parts, part.text)
		}
	}
	return firstNonEmpty(strings.Join(parts, ", "), "as few nodes as can be")
}

// needGPUs asks for the number of GPUs, which a layout may give.
func needGPUs(cmd *cobra.Command) error {
	if cmd.Flags().Changed("nodes") && cmd.Flags().Changed("gpus-per-node") {
		return nil
	}
	return needFlags(cmd, "gpus")
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
