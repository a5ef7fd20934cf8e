package quota

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newUsageCommand(a *app.App) *cobra.Command {
	ahead := 168
	c := &cobra.Command{
		Use: "usage [ORGANIZATION]", Short: "Show what a tenant holds, is promised and has used",
		Args: names.OptionalOrganization,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.Organization(a, cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Usage(cmd.Context(), id, ahead)
			if err != nil {
				return err
			}
			return showUsage(a, cmd, got)
		},
	}
	c.Flags().IntVar(&ahead, "hours", ahead, "how far ahead to look for the peak")
	return c
}

func showUsage(a *app.App, cmd *cobra.Command, got contract.QuotaUsage) error {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd,
			output.View[contract.QuotaUsage]{Name: func(x contract.QuotaUsage) string { return x.OrganizationID }}, got)
	}
	if err := output.List(a, cmd, usageView, got.Resources); err != nil {
		return err
	}
	p := got.Period
	limit := "no limit"
	if p.MoneyLimit != nil {
		limit = format.Money(*p.MoneyLimit)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(),
		"\nThis %s (from %s)\nGPU-HOURS    %.1f of %s\nMONEY        %s of %s\nSPECULATION  %s of %s a day\n",
		p.Period, format.Time(p.Start), p.GPUHours, limitText(p.GPUHoursLimit, ""), format.Money(p.Money), limit,
		format.Money(got.Speculation), format.Money(got.SpeculationLimit))
	return err
}
