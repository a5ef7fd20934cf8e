package plans

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Make asks for a plan and shows it.
func Make(a *app.App, cmd *cobra.Command, api *client.Client, kind string, request any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	got, err := api.CreatePlan(a.WithIdempotencyKey(cmd.Context()), contract.PlanCreate{Kind: kind, Request: body})
	if err != nil {
		return err
	}
	if err := Show(a, cmd, got); err != nil {
		return err
	}
	if a.Flags.DryRun {
		a.Say(cmd, "Dry run: nothing was changed.")
	}
	a.Say(cmd, "Next:  forewarm apply %s", got.ID)
	return nil
}
