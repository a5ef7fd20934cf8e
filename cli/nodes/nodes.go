// Package nodes has the commands about nodes.
package nodes

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// resumeText says what becomes of a node that was told to take work again.
func resumeText(x contract.Node) string {
	if x.State == "quarantined" {
		return "Its health is checked first: if its GPUs prove usable, it takes work again; if not, it stays in " +
			"quarantine.\nNext:  forewarm explain " + x.ID
	}
	return "It takes work again.\nNext:  forewarm nodes show " + x.ID
}

// NewCommand is the command nodes.
func NewCommand(a *app.App) *cobra.Command {
	do := func(use, short string, destroys bool, verb func(*client.Client, context.Context,
		string) (contract.Node, error)) *cobra.Command {
		return &cobra.Command{
			Use: use + " NODE", Short: short, Args: flags.ExactArgs("NODE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if destroys {
					if err := a.Confirm(cmd, "Keep node "+args[0]+
						", at its price, until it is resumed or drained"); err != nil {
						return err
					}
				}
				api, err := a.NewClient()
				if err != nil {
					return err
				}
				got, err := verb(api, a.WithIdempotencyKey(cmd.Context()), args[0])
				if err != nil {
					return err
				}
				if err := output.One(a, cmd, nodeView, got); err != nil {
					return err
				}
				if use == "resume" {
					a.Say(cmd, "%s", resumeText(got))
				}
				return nil
			},
		}
	}
	return app.NewGroupCommand("nodes", "See and manage nodes",
		listing.NewPooledCommand(a, "nodes", nodeView, (*client.Client).Nodes),
		do("show", "Show one node", false, (*client.Client).Node),
		newJoinCommand(a), newLabelCommand(a), newTaintCommand(a),
		do("drain", "Take no new work and retire when empty (operators)", false, (*client.Client).DrainNode),
		do("resume", "Take work again; out of quarantine only after a health check (operators)", false,
			(*client.Client).ResumeNode),
		do("quarantine", "Keep a node and its machine for inspection: holders stay, it takes no new work (operators)", true,
			(*client.Client).QuarantineNode))
}
