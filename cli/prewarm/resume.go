package prewarm

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

func newResumeCommand(a *app.App) *cobra.Command {
	var in contract.PrewarmResume
	c := &cobra.Command{
		Use: "resume", Short: "Warm speculative reservations again (admins)", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return changePrewarm(a, cmd, func(api *client.Client) (contract.Prewarm, error) {
				return api.ResumePrewarm(a.WithIdempotencyKey(cmd.Context()), in)
			})
		},
	}
	c.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	c.Flags().BoolVar(&in.Installation, "installation", false, "resume everybody (operators)")
	c.MarkFlagsMutuallyExclusive("org", "installation")
	return c
}
