package cli

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// gpuRow is a device and who holds it.
type gpuRow struct {
	contract.GPU
	HeldBy string `json:"held_by,omitempty"`
}

var gpuView = view[gpuRow]{
	name: func(x gpuRow) string { return x.UUID },
	columns: []column[gpuRow]{
		{head: "NODE", cell: func(x gpuRow) string { return badge(x.NodeID, x.Simulated) }},
		{head: "GPU", right: true, cell: func(x gpuRow) string { return strconv.Itoa(x.Index) }},
		{head: "POOL", cell: func(x gpuRow) string { return first(x.PoolName, x.PoolID) }},
		{head: "MODEL", cell: func(x gpuRow) string { return x.Model }},
		{head: "MEMORY", right: true, cell: func(x gpuRow) string { return gib(x.MemoryMiB) }},
		{head: "NODE STATE", cell: func(x gpuRow) string { return x.NodeState }},
		{head: "HELD BY", cell: func(x gpuRow) string { return dash(x.HeldBy) }},
		{head: "UUID", cell: func(x gpuRow) string { return x.UUID }, wide: true},
	},
}

// gpuFilter narrows the devices that are shown.
type gpuFilter struct {
	pool, node, model string
	state             []string
	free, held        bool
}

func (f gpuFilter) takes(x gpuRow) bool {
	return (f.node == "" || x.NodeID == f.node) && (f.model == "" || x.Model == f.model) &&
		(len(f.state) == 0 || slices.Contains(f.state, x.NodeState)) &&
		(!f.free || x.HeldBy == "" && x.NodeState == "ready") && (!f.held || x.HeldBy != "")
}

func (a *app) gpus() *cobra.Command {
	var f gpuFilter
	ls := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List GPUs, node by node, and who holds them", Args: noArgs,
		Example: "  forewarm gpus list --free\n  forewarm gpus list --pool demo-a100 -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := a.devices(cmd, f)
			if err != nil {
				return err
			}
			return list(a, cmd, gpuView, rows)
		},
	}
	ls.Flags().StringVar(&f.pool, "pool", "", "only those of this pool")
	ls.Flags().StringVar(&f.node, "node", "", "only those of this node")
	ls.Flags().StringVar(&f.model, "model", "", "only those of this model")
	ls.Flags().StringSliceVar(&f.state, "state", nil, "only those of nodes in any of these states")
	ls.Flags().BoolVar(&f.free, "free", false, "only those that are ready and that nobody holds")
	ls.Flags().BoolVar(&f.held, "held", false, "only those that somebody holds")
	ls.MarkFlagsMutuallyExclusive("free", "held")
	show := &cobra.Command{
		Use: "show GPU", Short: "Show one GPU, by its UUID", Args: named("GPU"),
		Example: "  forewarm gpus show GPU-SIM-5f1c3c2e-8d0b-4c0e-9b7a-2f6d1e4a7b90",
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := a.devices(cmd, gpuFilter{})
			if err != nil {
				return err
			}
			i := slices.IndexFunc(rows, func(x gpuRow) bool { return x.UUID == args[0] })
			if i < 0 {
				return &Error{Exit: ExitNotFound, Message: "there is no GPU " + args[0] + " in a node that lives", Next: []string{"forewarm gpus list -o wide"}}
			}
			return one(a, cmd, gpuView, rows[i])
		},
	}
	return group("gpus", "See every GPU and who holds it", ls, show)
}

// devices reads the devices that a filter takes, in the order of pools, nodes and
// their places in them.
func (a *app) devices(cmd *cobra.Command, f gpuFilter) ([]gpuRow, error) {
	api, err := a.client()
	if err != nil {
		return nil, err
	}
	devices, err := client.All(api.GPUs(cmd.Context(), client.Filter{Pool: f.pool}))
	if err != nil {
		return nil, err
	}
	held, err := client.All(api.Allocations(cmd.Context(), client.Filter{Pool: f.pool}))
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(join(devices, held), func(x gpuRow) bool { return !f.takes(x) })
	slices.SortStableFunc(rows, func(x, y gpuRow) int {
		return cmp.Or(cmp.Compare(x.PoolName, y.PoolName), cmp.Compare(x.NodeID, y.NodeID), cmp.Compare(x.Index, y.Index))
	})
	return rows, nil
}

func join(devices []contract.GPU, held []contract.Allocation) []gpuRow {
	holder := map[string]string{}
	for _, x := range held {
		for _, d := range x.Devices {
			holder[d.UUID] = first(x.Name, x.ID)
		}
	}
	rows := make([]gpuRow, 0, len(devices))
	for _, d := range devices {
		rows = append(rows, gpuRow{GPU: d, HeldBy: holder[d.UUID]})
	}
	return rows
}
