// Package recovery has the commands for an installation whose database was
// restored.
package recovery

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var recoveringView = output.View[contract.RecoveringPool]{
	Name: func(x contract.RecoveringPool) string { return x.Name },
	Columns: []output.Column[contract.RecoveringPool]{
		{Head: "ONLY RECONCILES", Cell: func(x contract.RecoveringPool) string { return x.Name }},
		{Head: "SINCE", Cell: func(x contract.RecoveringPool) string { return format.Time(x.Since) }},
		{Head: "REASON", Cell: func(x contract.RecoveringPool) string { return x.Reason }},
	},
}

var orphanView = output.View[contract.OrphanMachine]{
	Name: func(x contract.OrphanMachine) string { return x.Machine },
	Columns: []output.Column[contract.OrphanMachine]{
		{Head: "MACHINE WITHOUT A NODE", Cell: func(x contract.OrphanMachine) string { return x.Machine }},
		{Head: "PROVISIONER", Cell: func(x contract.OrphanMachine) string { return x.Provisioner }},
		{Head: "TYPE", Cell: func(x contract.OrphanMachine) string { return format.OrDash(x.InstanceType) }},
		{Head: "TAGGED FOR", Cell: func(x contract.OrphanMachine) string { return format.OrDash(x.NodeID) }},
		{Head: "$/H", Right: true,
			Cell: func(x contract.OrphanMachine) string { return format.Money(x.PricePerNodeHour) }},
		{Head: "BILLED SINCE", Cell: func(x contract.OrphanMachine) string { return format.Time(x.BilledFrom) }},
	},
}

// NewCommand is the command recovery.
func NewCommand(a *app.App) *cobra.Command {
	show := newStepCommand(a, "show", "Show the pools that only reconcile, and the machines without a node (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			return api.Recovery(cmd.Context())
		})
	var reason string
	begin := newStepCommand(a, "begin", "Create, end and hand out nothing until an operator confirms (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			return api.BeginRecovery(cmd.Context(), reason)
		})
	begin.Flags().StringVar(&reason, "reason", "an operator asked", "why; shown to people whose requests are refused")
	var journal bool
	confirm := newStepCommand(a, "confirm", "Resume work; machines without a node are then ended (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			if journal {
				if _, err := api.AcceptJournal(cmd.Context()); err != nil {
					return contract.RecoveryState{}, err
				}
			}
			return api.ConfirmRecovery(cmd.Context())
		})
	confirm.Flags().BoolVar(&journal, "journal", false,
		"also accept the journal as it is, without seals that a server or worker has seen (see "+
			"forewarm audit verify)")
	return app.NewGroupCommand("recovery", "Only reconcile, after a database was restored", show, begin, confirm)
}

func newStepCommand(a *app.App, name, short string,
	ask func(*cobra.Command, *client.Client) (contract.RecoveryState, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := ask(cmd, api)
			if err != nil {
				return err
			}
			return showRecovery(a, cmd, got)
		},
	}
}

func showRecovery(a *app.App, cmd *cobra.Command, got contract.RecoveryState) error {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd,
			output.View[contract.RecoveryState]{
				Name: func(x contract.RecoveryState) string { return format.YesNo(x.Recovering) }},
			got)
	}
	if gap := got.Journal; gap != nil {
		a.Say(cmd, "The journal has needed attention since %s: %s.", format.Time(gap.Since), gap.Reason)
		a.Say(cmd,
			"If its database was restored from a backup, accept it as it is: forewarm recovery confirm --journal")
	}
	if len(got.Pools) == 0 {
		a.Say(cmd, "Every pool works.")
	} else if err := output.List(a, cmd, recoveringView, got.Pools); err != nil {
		return err
	}
	if len(got.Orphans) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout())
	return output.List(a, cmd, orphanView, got.Orphans)
}
