package flags

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// BindNeeds are what the pool of a request must have. Memory is given in GiB.
func BindNeeds(f *pflag.FlagSet, n *contract.Needs) {
	f.StringVar(&n.Region, "region", "", "only in this region")
	f.Var((*gibibytes)(&n.MinGPUMemoryMiB), "min-gpu-memory", "only GPUs with at least this many GiB of memory")
	f.Var((*gibibytes)(&n.MinNodeMemoryMiB), "min-node-memory",
		"only nodes with at least this many GiB of memory")
}

// gibibytes is a flag that counts GiB and is kept in MiB.
type gibibytes int

// String writes the number of GiB.
func (g *gibibytes) String() string { return strconv.FormatFloat(float64(*g)/1024, 'f', -1, 64) }

// Type names the flag's value in help texts.
func (g *gibibytes) Type() string { return "GiB" }

// Set reads a number of GiB.
func (g *gibibytes) Set(s string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "GiB"), 64)
	if err != nil || !(n*1024 >= 1) || n > 1<<20 {
		return errors.New("must be a number of GiB, such as 40")
	}
	*g = gibibytes(math.Round(n * 1024))
	return nil
}

// BindLayout are how GPUs are to lie on nodes.
func BindLayout(f *pflag.FlagSet, l *contract.Layout) {
	f.IntVar(&l.Nodes, "nodes", 0, "on this many nodes (default as few as possible)")
	f.IntVar(&l.GPUsPerNode, "gpus-per-node", 0, "how many on each node; the last may have fewer")
	f.StringVar(&l.Spread, "spread", "", "any, or even: the same number on each node (default any)")
}

// AskedLayout is how GPUs were asked to lie on nodes.
func AskedLayout(nodes, perNode int, spread string) string {
	var parts []string
	for _, part := range []struct {
		said bool
		text string
	}{{nodes > 0, format.Count(nodes, "node")}, {perNode > 0, fmt.Sprintf("%d a node", perNode)},
		{spread != "", spread}} {
		if part.said {
			parts = append(parts, part.text)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "as few nodes as possible")
}

// NeedGPUs asks for the number of GPUs, which a layout may give.
func NeedGPUs(cmd *cobra.Command) error {
	if cmd.Flags().Changed("nodes") && cmd.Flags().Changed("gpus-per-node") {
		return nil
	}
	return Need(cmd, "gpus")
}

// HasLayout reports whether the command says how GPUs are to lie on nodes.
func HasLayout(cmd *cobra.Command) bool {
	for _, flag := range []string{"nodes", "gpus-per-node", "spread"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			return true
		}
	}
	return false
}
