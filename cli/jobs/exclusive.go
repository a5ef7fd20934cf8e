package jobs

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/contract"
)

// takeWholeNodes asks for all GPUs of each node, where the job is to be alone.
func (r *request) takeWholeNodes(a *app.App, cmd *cobra.Command, in *contract.JobCreate) error {
	if !r.exclusive {
		return nil
	}
	if in.Pool == "" {
		return wrongUse("--exclusive: name the pool, as pools have nodes of different sizes: forewarm pools list")
	}
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	pool, err := api.Pool(cmd.Context(), in.Pool)
	switch {
	case err != nil:
		return err
	case in.GPUsPerNode > pool.GPUsPerNode:
		return wrongUse("--exclusive: nodes of pool %s have %d GPUs, and %d on each are asked for", pool.Name,
			pool.GPUsPerNode, in.GPUsPerNode)
	case in.Nodes == 0:
		in.Nodes = max(1, (in.GPUs+pool.GPUsPerNode-1)/pool.GPUsPerNode)
	}
	in.GPUs, in.GPUsPerNode = 0, pool.GPUsPerNode
	return nil
}
