package nodes

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/labels"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/contract"
)

func newLabelCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "label NODE KEY=VALUE... KEY-...", Short: "Set and remove labels, for which jobs ask (operators)",
		Long: "Set labels of a node, as in disk=nvme, and remove some, as in disk-. Jobs ask for them by --constraint and " +
			"--prefer. They end with the node: what takes its slot next has none. To label all of a pool: forewarm pools label.",
		Args: flags.AtLeastArgs("NODE", "KEY=VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return patchNode(a, cmd, args[0], func(n contract.Node) (p contract.NodePatch, err error) {
				all, err := labels.Change(n.Labels, args[1:], "forewarm nodes label --help")
				return contract.NodePatch{Labels: &all}, err
			})
		},
	}
}

func newTaintCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "taint NODE WORD... WORD-...", Short: "Set and remove taints, which keep jobs away (operators)",
		Long: "Set taints of a node, as in licensed, and remove some, as in licensed-. Jobs that do not --tolerate each of " +
			"them start elsewhere; what runs on the node goes on. They end with the node.",
		Args: flags.AtLeastArgs("NODE", "WORD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return patchNode(a, cmd, args[0], func(n contract.Node) (contract.NodePatch, error) {
				taints := labels.ChangeTaints(n.Taints, args[1:])
				return contract.NodePatch{Taints: &taints}, nil
			})
		},
	}
}

// patchNode changes the version of the node that it has just read, so that a change made meanwhile is a conflict
// and not overwritten.
func patchNode(a *app.App, cmd *cobra.Command, id string,
	change func(contract.Node) (contract.NodePatch, error)) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	n, err := api.Node(cmd.Context(), id)
	if err != nil {
		return err
	}
	patch, err := change(n)
	if err != nil {
		return err
	}
	if a.PreviewsOnly() {
		return plans.Make(a, cmd, api, contract.PlanNode,
			contract.PlannedNode{NodeID: n.ID, Version: n.Version, NodePatch: patch})
	}
	got, err := api.PatchNode(a.WithIdempotencyKey(cmd.Context()), n.ID, n.Version, patch)
	if err != nil {
		return err
	}
	got.Daemon = n.Daemon
	return output.One(a, cmd, nodeView, got)
}
