package pools

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/labels"
	"github.com/forewarm/forewarm/contract"
)

func newLabelCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "label POOL KEY=VALUE... KEY-...", Short: "Set and remove labels of all its nodes, for which jobs ask " +
			"(operators)",
		Long: "Set labels of all nodes of a pool, also of those that are not made yet, as in disk=nvme, and remove some, " +
			"as in disk-. Jobs ask for them by --constraint and --prefer, and have nodes made that have them. A node's own " +
			"label (forewarm nodes label) goes before its pool's.",
		Args: flags.AtLeastArgs("POOL", "KEY=VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return patchPool(a, cmd, args[0], func(p contract.Pool) (contract.PoolPatch, error) {
				all, err := labels.Change(p.Labels, args[1:], "forewarm pools label --help")
				return contract.PoolPatch{Labels: &all}, err
			})
		},
	}
}

func newTaintCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "taint POOL WORD... WORD-...", Short: "Set and remove taints of all its nodes, which keep jobs away " +
			"(operators)",
		Long: "Set taints of all nodes of a pool, also of those that are not made yet, as in licensed, and remove some, as " +
			"in licensed-. Jobs that do not --tolerate each of them wait in other pools; what runs goes on.",
		Args: flags.AtLeastArgs("POOL", "WORD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return patchPool(a, cmd, args[0], func(p contract.Pool) (contract.PoolPatch, error) {
				taints := labels.ChangeTaints(p.Taints, args[1:])
				return contract.PoolPatch{Taints: &taints}, nil
			})
		},
	}
}
