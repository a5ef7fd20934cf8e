package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var recoveringView = view[contract.RecoveringPool]{
	name: func(x contract.RecoveringPool) string { return x.Name },
	columns: []column[contract.RecoveringPool]{
		{head: "ONLY RECONCILES", cell: func(x contract.RecoveringPool) string { return x.Name }},
		{head: "SINCE", cell: func(x contract.RecoveringPool) string { return formatTime(x.Since) }},
		{head: "REASON", cell: func(x contract.RecoveringPool) string { return x.Reason }},
	},
}

var orphanView = view[contract.OrphanMachine]{
	name: func(x contract.OrphanMachine) string { return x.Machine },
	columns: []column[contract.OrphanMachine]{
		{head: "MACHINE WITHOUT A NODE", cell: func(x contract.OrphanMachine) string { return x.Machine }},
		{head: "PROVISIONER", cell: func(x contract.OrphanMachine) string { return x.Provisioner }},
		{head: "TYPE", cell: func(x contract.OrphanMachine) string { return orDash(x.InstanceType) }},
		{head: "TAGGED FOR", cell: func(x contract.OrphanMachine) string { return orDash(x.NodeID) }},
		{head: "$/H", right: true, cell: func(x contract.OrphanMachine) string { return formatMoney(x.PricePerNodeHour) }},
		{head: "BILLED SINCE", cell: func(x contract.OrphanMachine) string { return formatTime(x.BilledFrom) }},
	},
}

func (a *app) newRecoveryCommand() *cobra.Command {
	show := a.newRecoveryStepCommand("show", "Show what only reconciles, and the machines that no node stands for (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			return api.Recovery(cmd.Context())
		})
	var reason string
	begin := a.newRecoveryStepCommand("begin", "Make, end and hand out nothing until it is confirmed (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			return api.BeginRecovery(cmd.Context(), reason)
		})
	begin.Flags().StringVar(&reason, "reason", "an operator asked", "why, for those who are refused")
	var journal bool
	confirm := a.newRecoveryStepCommand("confirm", "Work again; machines that no node stands for are then ended (operators)",
		func(cmd *cobra.Command, api *client.Client) (contract.RecoveryState, error) {
			if journal {
				if _, err := api.AcceptJournal(cmd.Context()); err != nil {
					return contract.RecoveryState{}, err
				}
			}
			return api.ConfirmRecovery(cmd.Context())
		})
	confirm.Flags().BoolVar(&journal, "journal", false,
		"also accept the journal as it is, although seals are missing that a server or worker has seen (see "+
			"forewarm audit verify)")
	return newGroupCommand("recovery", "Only look, after a database was restored", show, begin, confirm)
}

func (a *app) newRecoveryStepCommand(name, short string,
	ask func(*cobra.Command, *client.Client) (contract.RecoveryState, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := ask(cmd, api)
			if err != nil {
				return err
			}
			return a.showRecovery(cmd, got)
		},
	}
}

func (a *app) showRecovery(cmd *cobra.Command, got contract.RecoveryState) error {
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd,
			view[contract.RecoveryState]{name: func(x contract.RecoveryState) string { return yesNo(x.Recovering) }},
			got)
	}
	if gap := got.Journal; gap != nil {
		a.say(cmd, "The journal needs attention since %s: %s.", formatTime(gap.Since), gap.Reason)
		a.say(cmd, "If its database was restored from a backup, accept it as it is: forewarm recovery confirm --journal")
	}
	if len(got.Pools) == 0 {
		a.say(cmd, "Every pool works.")
	} else if err := showList(a, cmd, recoveringView, got.Pools); err != nil {
		return err
	}
	if len(got.Orphans) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout())
	return showList(a, cmd, orphanView, got.Orphans)
}
