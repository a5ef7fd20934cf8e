package organizations

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newCreateCommand(a *app.App) *cobra.Command {
	var gpus int
	var budget string
	c := &cobra.Command{
		Use: "create NAME --max-gpus N", Short: "Make a tenant (operators)", Args: flags.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Need(cmd, "max-gpus"); err != nil {
				return err
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err :=
				api.CreateOrganization(a.WithIdempotencyKey(cmd.Context()), contract.OrganizationCreate{Name: args[0],
					Limits: contract.Limits{MaxGPUs: gpus, SpeculationPerDay: flags.ParseDollars(budget)}})
			if err != nil {
				return err
			}
			return output.One(a, cmd, organizationView, got)
		},
	}
	c.Flags().IntVar(&gpus, "max-gpus", 0, "GPUs held and promised at once")
	c.Flags().StringVar(&budget, "speculation-per-day", "0", "USD of speculative reservations per UTC day")
	return c
}
