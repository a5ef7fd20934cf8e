// Package nodes has the commands about nodes.
package nodes

import (
	"context"
	"fmt"

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

// nodeVerb is what a command does to a node.
type nodeVerb func(ctx context.Context, api *client.Client, id string) (contract.Node, error)

// newVerbCommand is a command that does something to a node; with a question first, which may be empty.
func newVerbCommand(a *app.App, use, short, question string, verb nodeVerb) *cobra.Command {
	return &cobra.Command{
		Use: use + " NODE", Short: short, Args: flags.ExactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if question != "" {
				if err := a.Confirm(cmd, fmt.Sprintf(question, args[0])); err != nil {
					return err
				}
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := verb(a.WithIdempotencyKey(cmd.Context()), api, args[0])
			if err != nil {
				return err
			}
			if err := output.One(a, cmd, nodeView, withDaemon(cmd.Context(), api, got)); err != nil {
				return err
			}
			if use == "resume" {
				a.Say(cmd, "%s", resumeText(got))
			}
			return nil
		},
	}
}

// withDaemon is a node with its daemon, which answers to changes have not.
func withDaemon(ctx context.Context, api *client.Client, x contract.Node) contract.Node {
	if x.Daemon == nil {
		if now, err := api.Node(ctx, x.ID); err == nil { // what was changed is told in any case
			x.Daemon = now.Daemon
		}
	}
	return x
}

// newHaltCommand is a command after which a node takes no new work, for a reason that may be given.
func newHaltCommand(a *app.App, use, short, question string, verb func(api *client.Client, ctx context.Context,
	id, reason string) (contract.Node, error)) *cobra.Command {
	var reason string
	cmd := newVerbCommand(a, use, short, question, func(ctx context.Context, api *client.Client,
		id string) (contract.Node, error) {
		return verb(api, ctx, id, reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other operators")
	return cmd
}

// NewCommand is the command nodes.
func NewCommand(a *app.App) *cobra.Command {
	read := func(ctx context.Context, api *client.Client, id string) (contract.Node, error) {
		return api.Node(ctx, id)
	}
	resume := func(ctx context.Context, api *client.Client, id string) (contract.Node, error) {
		return api.ResumeNode(ctx, id)
	}
	return app.NewGroupCommand("nodes", "See and manage nodes",
		listing.NewPooledCommand(a, "nodes", nodeView, (*client.Client).Nodes),
		newVerbCommand(a, "show", "Show one node", "", read),
		newJoinCommand(a), newLabelCommand(a), newTaintCommand(a),
		newHaltCommand(a, "drain", "Take no new work and retire when empty (operators)", "", (*client.Client).DrainNode),
		newVerbCommand(a, "resume", "Take work again; out of quarantine only after a health check (operators)", "", resume),
		newHaltCommand(a, "quarantine", "Keep a node and its machine for inspection: holders stay, it takes no new work "+
			"(operators)", "Keep node %s, at its price, until it is resumed or drained", (*client.Client).QuarantineNode))
}
