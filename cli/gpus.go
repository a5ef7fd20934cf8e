package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var gpuView = view[contract.GPU]{
	name: func(x contract.GPU) string { return firstNonEmpty(x.UUID, x.NodeID) },
	columns: []column[contract.GPU]{
		{head: "NODE", cell: func(x contract.GPU) string { return markSimulated(x.NodeID, x.Simulated) }},
		{head: "GPU", right: true, cell: func(x contract.GPU) string { return strconv.Itoa(x.Index) }},
		{head: "POOL", cell: func(x contract.GPU) string { return firstNonEmpty(x.PoolName, x.PoolID) }},
		{head: "MODEL", cell: func(x contract.GPU) string { return x.Model }},
		{head: "MEMORY", right: true, cell: func(x contract.GPU) string { return formatGiB(x.MemoryMiB) }},
		{head: "STATE", cell: func(x contract.GPU) string { return x.State }},
		{head: "HELD BY", cell: func(x contract.GPU) string { return orDash(firstNonEmpty(x.AllocationName, x.AllocationID)) }},
		{head: "HEALTH", cell: func(x contract.GPU) string { return x.Health }, wide: true},
		{head: "NODE STATE", cell: func(x contract.GPU) string { return x.NodeState }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.GPU) string { return orDash(firstNonEmpty(x.OrganizationName, x.OrganizationID)) }, wide: true},
		{head: "UUID", cell: func(x contract.GPU) string { return orDash(x.UUID) }, wide: true},
	},
}

func (a *app) newGPUsCommand() *cobra.Command {
	var f client.GPUFilter
	var free, held bool
	ls := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List GPUs, node by node, and who holds them", Args: noArgs,
		Long: "List GPUs, node by node, and who holds them.\n\n" +
			"Operators see all. Others see those that their organization holds, unless the installation shows them " +
			"all (tenants_see_nodes).",
		Example: "  forewarm gpus list --free\n  forewarm gpus list --pool demo-a100 -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
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
			return showList(a, cmd, gpuView, rows)
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
		Use: "show GPU", Short: "Show one GPU, by its UUID", Args: exactArgs("GPU"),
		Example: "  forewarm gpus show GPU-SIM-5f1c3c2e-8d0b-4c0e-9b7a-2f6d1e4a7b90",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.GPU(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showOne(a, cmd, gpuView, got)
		},
	}
	return newGroupCommand("gpus", "See GPUs and who holds them", ls, show)
}
