package plans

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// showAgain is a dry run of applying: a plan shows what it would do.
func showAgain(a *app.App, cmd *cobra.Command, api *client.Client, id string) error {
	got, err := api.Plan(cmd.Context(), id)
	if err != nil {
		return err
	}
	a.Say(cmd, "Dry run: nothing was changed.")
	return Show(a, cmd, got)
}

// NewApplyCommand is the command apply.
func NewApplyCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "apply PLAN", Short: "Do exactly what a plan shows, or nothing", Args: flags.ExactArgs("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if a.Flags.DryRun {
				return showAgain(a, cmd, api, args[0])
			}
			got, err := api.ApplyPlan(a.WithIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			return showApplied(a, cmd, got)
		},
	}
}

// showApplied shows a plan that was applied, and what it made.
func showApplied(a *app.App, cmd *cobra.Command, p contract.Plan) error {
	made := madeBy(p)
	if a.Flags.Output == output.Name && made.ID != "" {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), format.Plain(made.ID))
		return err
	}
	if err := Show(a, cmd, p); err != nil {
		return err
	}
	switch noun := names.NounOf(made.ID); {
	case made.ID == "":
	case noun == "allocations":
		a.Say(cmd, "%s", NextCommands(contract.Allocation{ID: made.ID, State: made.State}))
	case made.State == "booked" || made.State == "waitlisted" || made.State == "warming":
		a.Say(cmd, "Next:  forewarm reservations claim %s  ·  forewarm reservations cancel %s", made.ID, made.ID)
	}
	return nil
}

// made is what a plan's answer is about.
type made struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// madeBy is what an applied plan made or changed; its id is empty when that is
// not one thing.
func madeBy(p contract.Plan) (m made) {
	if p.State != "applied" || json.Unmarshal(p.Answer, &m) != nil {
		return made{}
	}
	return m
}
