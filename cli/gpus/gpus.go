// Package gpus shows GPUs, and who holds them.
package gpus

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var gpuView = output.View[contract.GPU]{
	Name: func(x contract.GPU) string { return cmp.Or(x.UUID, x.NodeID) },
	Columns: []output.Column[contract.GPU]{
		{Head: "NODE", Cell: func(x contract.GPU) string { return format.MarkSimulated(x.NodeID, x.Simulated) }},
		{Head: "GPU", Right: true, Cell: func(x contract.GPU) string { return format.GPUPlace(x) }},
		{Head: "POOL", Cell: func(x contract.GPU) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "MODEL", Cell: func(x contract.GPU) string { return x.Model }},
		{Head: "MEMORY", Right: true, Cell: func(x contract.GPU) string { return format.GiB(x.MemoryMiB) }},
		{Head: "STATE", Cell: func(x contract.GPU) string { return x.State }},
		{Head: "HELD BY",
			Cell: func(x contract.GPU) string { return format.OrDash(cmp.Or(x.AllocationName, x.AllocationID)) }},
		{Head: "HEALTH", Cell: func(x contract.GPU) string { return x.Health }, Wide: true},
		{Head: "BURN-IN", Cell: burnInText, Wide: true},
		{Head: "NODE STATE", Cell: func(x contract.GPU) string { return x.NodeState }, Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.GPU) string { return format.OrDash(cmp.Or(x.OrganizationName, x.OrganizationID)) },
			Wide: true},
		{Head: "UUID", Cell: func(x contract.GPU) string { return format.OrDash(x.UUID) }, Wide: true},
	},
}

// NewCommand is the command gpus.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("gpus", "See GPUs, who holds them and what they did",
		newListCommand(a), newShowCommand(a), newHistoryCommand(a))
}

// burnInText is what came of the test of a GPU's memory.
func burnInText(x contract.GPU) string {
	if x.Seen == nil || x.Seen.BurnIn == nil {
		return "-"
	}
	return x.Seen.BurnIn.State + ": " + x.Seen.BurnIn.Detail
}
