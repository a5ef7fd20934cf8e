package gpus

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newListCommand is the command gpus list.
func newListCommand(a *app.App) *cobra.Command {
	var f client.GPUFilter
	var free, held bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List GPUs, node by node, and who holds them", Args: flags.NoArgs,
		Long: "List GPUs, node by node, and who holds them.\n\n" +
			"Operators see all GPUs. Others see those that their organization holds, unless the installation shows them " +
			"all (tenants_see_nodes).",
		Example: "  forewarm gpus list --free\n  forewarm gpus list --pool demo-a100 -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if free {
				f.State = []string{"free"}
			}
			if held {
				f.State = []string{"held"}
			}
			read := func(api *client.Client, ctx context.Context, page client.Filter) iter.Seq2[contract.GPU, error] {
				f.PageSize = page.PageSize
				return api.GPUs(ctx, f)
			}
			return listing.Run(a, cmd, gpuView, read, client.Filter{})
		},
	}
	c.Flags().StringVar(&f.Pool, "pool", "", "only those in this pool")
	c.Flags().StringVar(&f.Node, "node", "", "only those on this node")
	c.Flags().StringVar(&f.Organization, "org", "", "only those that this organization holds")
	c.Flags().StringVar(&f.Model, "model", "", "only those with this model")
	c.Flags().StringSliceVar(&f.State, "state", nil,
		"only those in any of these states: free, held, booked, coming, unavailable")
	c.Flags().StringSliceVar(&f.Health, "health", nil,
		"only those with any of these: healthy, degraded, unhealthy, unknown")
	c.Flags().BoolVar(&free, "free", false, "the same as --state free")
	c.Flags().BoolVar(&held, "held", false, "the same as --state held")
	listing.AddLimit(c)
	for _, pair := range [][]string{{"free", "held"}, {"free", "state"}, {"held", "state"}} {
		c.MarkFlagsMutuallyExclusive(pair...)
	}
	return c
}
