package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var nodeView = view[contract.Node]{
	name: func(x contract.Node) string { return x.ID },
	columns: []column[contract.Node]{
		{head: "ID", cell: func(x contract.Node) string { return markSimulated(x.ID, x.Simulated) }},
		{head: "STATE", cell: func(x contract.Node) string { return x.State }},
		{head: "GPUS", right: true, cell: func(x contract.Node) string { return strconv.Itoa(x.GPUs) }},
		{head: "REQUESTED", cell: func(x contract.Node) string { return formatTime(x.RequestedAt) }},
		{head: "BOOT", right: true, cell: func(x contract.Node) string { return elapsedText(x.RequestedAt, x.ReadyAt) }},
		{head: "READY", cell: func(x contract.Node) string { return formatTime(x.ReadyAt) }},
		{head: "POOL", cell: func(x contract.Node) string { return firstNonEmpty(x.PoolName, x.PoolID) }},
		{head: "SLOT", right: true, cell: func(x contract.Node) string { return strconv.Itoa(x.Slot) }, wide: true},
		{head: "SOURCE", cell: func(x contract.Node) string { return sourceText(x.Provisioner, x.Region, x.InstanceType) },
			wide: true},
		{head: "$/H", right: true, cell: func(x contract.Node) string {
			if x.PricePerNodeHour == nil {
				return "-"
			}
			return formatMoney(*x.PricePerNodeHour)
		}, wide: true},
		{head: "PROVIDER ID", cell: func(x contract.Node) string { return orDash(x.ProviderID) }, wide: true},
		{head: "ADDRESS", cell: func(x contract.Node) string { return orDash(x.Address) }, wide: true},
		{head: "ENDS ITSELF", cell: func(x contract.Node) string { return formatTime(x.ExpiresAt) }, wide: true},
		{head: "GONE", cell: func(x contract.Node) string { return formatTime(x.GoneAt) }, wide: true},
		{head: "LAST FAILURE", cell: func(x contract.Node) string { return failureText(x.Failing) }, wide: true},
		{head: "REASON", cell: func(x contract.Node) string {
			if x.Failing != nil {
				return "provider_failing"
			}
			return orDash(x.Reason)
		}},
	},
}

// sourceText names one place that machines come from.
func sourceText(provisioner, region, kind string) string {
	return orDash(strings.Join(slices.DeleteFunc([]string{provisioner, region, kind},
		func(s string) bool { return s == "" }), "/"))
}

func elapsedText(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	return formatDuration(to.Sub(from))
}

// resumeText says what becomes of a node that was told to take work again.
func resumeText(x contract.Node) string {
	if x.State == "quarantined" {
		return "Its health is checked first: if its GPUs prove usable, it takes work again; if not, it stays in " +
			"quarantine.\nNext:  forewarm explain " + x.ID
	}
	return "It takes work again.\nNext:  forewarm nodes show " + x.ID
}

func (a *app) newNodesCommand() *cobra.Command {
	do := func(use, short string, destroys bool, verb func(*client.Client, context.Context,
		string) (contract.Node, error)) *cobra.Command {
		return &cobra.Command{
			Use: use + " NODE", Short: short, Args: exactArgs("NODE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if destroys {
					if err := a.confirm(cmd, args, "Keep node "+args[0]+
						", at its price, until it is resumed or drained"); err != nil {
						return err
					}
				}
				api, err := a.newClient()
				if err != nil {
					return err
				}
				got, err := verb(api, a.withIdempotencyKey(cmd.Context()), args[0])
				if err != nil {
					return err
				}
				if err := showOne(a, cmd, nodeView, got); err != nil {
					return err
				}
				if use == "resume" {
					a.say(cmd, "%s", resumeText(got))
				}
				return nil
			},
		}
	}
	return newGroupCommand("nodes", "See and steer machines", newPooledListCommand(a, "nodes", nodeView, (*client.Client).Nodes),
		do("show", "Show one node", false, (*client.Client).Node),
		do("drain", "Take no new work and retire when empty (operators)", false, (*client.Client).DrainNode),
		do("resume", "Take work again; out of quarantine only after a health check (operators)", false,
			(*client.Client).ResumeNode),
		do("quarantine", "Keep it and its machine for inspection: holders stay, nothing new comes (operators)", true,
			(*client.Client).QuarantineNode))
}
