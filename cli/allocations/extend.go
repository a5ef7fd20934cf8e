package allocations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewExtendCommand is the command extend.
func NewExtendCommand(a *app.App) *cobra.Command {
	var by flags.Span
	c := &cobra.Command{
		Use: "extend ALLOCATION --by DURATION", Short: "Extend a lease", Args: flags.ExactArgs("ALLOCATION"),
		Long: `Extend a lease. The added time counts for the key that holds the lease, within that key's caps, and in
the budgets of the day and the month in which the lease began.

A key with caps extends only leases that count for those caps: its own, and those of keys that were made with it.`,
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Need(cmd, "by"); err != nil {
				return err
			}
			api, id, err := names.AllocationID(a, cmd, args[0])
			if err != nil {
				return err
			}
			extend := func(dry bool) func(context.Context) (contract.Allocation, error) {
				return func(ctx context.Context) (contract.Allocation, error) {
					return api.Extend(ctx, id, by.Duration(), client.Options{DryRun: dry})
				}
			}
			if err := AgreeToCost(a, cmd, extend(true)); err != nil {
				return err
			}
			got, err := extend(a.Flags.DryRun)(a.WithIdempotencyKey(cmd.Context()))
			if err != nil {
				return err
			}
			if a.Flags.DryRun {
				a.Say(cmd, "Dry run: nothing was changed.")
			}
			return output.One(a, cmd, View, got)
		},
	}
	c.Flags().Var(&by, "by", "how much longer, such as 1h")
	return c
}
