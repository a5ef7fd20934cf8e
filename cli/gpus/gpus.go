// Package gpus shows GPUs, and who holds them.
package gpus

import (
	"cmp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var gpuView = output.View[contract.GPU]{
	Name: func(x contract.GPU) string { return cmp.Or(x.UUID, x.NodeID) },
	Columns: []output.Column[contract.GPU]{
		{Head: "NODE", Cell: func(x contract.GPU) string { return format.MarkSimulated(x.NodeID, x.Simulated) }},
		{Head: "GPU", Right: true, Cell: func(x contract.GPU) string { return strconv.Itoa(x.Index) }},
		{Head: "POOL", Cell: func(x contract.GPU) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "MODEL", Cell: func(x contract.GPU) string { return x.Model }},
		{Head: "MEMORY", Right: true, Cell: func(x contract.GPU) string { return format.GiB(x.MemoryMiB) }},
		{Head: "STATE", Cell: func(x contract.GPU) string { return x.State }},
		{Head: "HELD BY",
			Cell: func(x contract.GPU) string { return format.OrDash(cmp.Or(x.AllocationName, x.AllocationID)) }},
		{Head: "HEALTH", Cell: func(x contract.GPU) string { return x.Health }, Wide: true},
		{Head: "NODE STATE", Cell: func(x contract.GPU) string { return x.NodeState }, Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.GPU) string { return format.OrDash(cmp.Or(x.OrganizationName, x.OrganizationID)) },
			Wide: true},
		{Head: "UUID", Cell: func(x contract.GPU) string { return format.OrDash(x.UUID) }, Wide: true},
	},
}

// NewCommand is the command gpus.
func NewCommand(a *app.App) *cobra.Command {
	var f client.GPUFilter
	var free, held bool
	ls := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List GPUs, node by node, and who holds them", Args: flags.NoArgs,
		Long: "List GPUs, node by node, and who holds them.\n\n" +
			"Operators see all. Others see those that their organization holds, unless the installation shows them " +
			"all (tenants_see_nodes).",
		Example: "  forewarm gpus list --free\n  forewarm gpus list --pool demo-a100 -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if free {
				f.State = []string{"free"}
			}
			if held {
				f.State = []string{"held"}
			}
			rows, err := client.All(api.GPUs(cmd.Context(), f))
			if err != nil {
				return err
			}
			return output.List(a, cmd, gpuView, rows)
		},
	}
	ls.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	ls.Flags().StringVar(&f.Node, "node", "", "only those of this node")
	ls.Flags().StringVar(&f.Organization, "org", "", "only those that this organization holds")
	ls.Flags().StringVar(&f.Model, "model", "", "only those of this model")
	ls.Flags().StringSliceVar(&f.State, "state", nil,
		"only those that are any of free, held, booked, coming, unavailable")
	ls.Flags().StringSliceVar(&f.Health, "health", nil, "only those that are any of healthy, unhealthy, unknown")
	ls.Flags().BoolVar(&free, "free", false, "the same as --state free")
	ls.Flags().BoolVar(&held, "held", false, "the same as --state held")
	for _, pair := range [][]string{{"free", "held"}, {"free", "state"}, {"held", "state"}} {
		ls.MarkFlagsMutuallyExclusive(pair...)
	}
	show := &cobra.Command{
		Use: "show GPU", Short: "Show one GPU, by its UUID", Args: flags.ExactArgs("GPU"),
		Example: "  forewarm gpus show GPU-SIM-5f1c3c2e-8d0b-4c0e-9b7a-2f6d1e4a7b90",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.GPU(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return output.One(a, cmd, gpuView, got)
		},
	}
	return app.NewGroupCommand("gpus", "See GPUs and who holds them", ls, show)
}
