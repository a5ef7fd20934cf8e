// Package prewarm stops and resumes pre-warming for speculative reservations.
package prewarm

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command prewarm.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("prewarm", "Pause and resume speculative pre-warming", newStatusCommand(a),
		newPauseCommand(a),
		newResumeCommand(a))
}

func showPrewarm(a *app.App, cmd *cobra.Command, got contract.Prewarm) error {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd, output.View[contract.Prewarm]{Name: prewarmState}, got)
	}
	if len(got.Pauses) == 0 {
		a.Say(cmd, "Speculative reservations are warmed: nothing is paused.")
		return nil
	}
	return output.List(a, cmd, pauseView, got.Pauses)
}

func changePrewarm(a *app.App, cmd *cobra.Command, change func(*client.Client) (contract.Prewarm, error)) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	got, err := change(api)
	if err != nil {
		return err
	}
	return showPrewarm(a, cmd, got)
}
