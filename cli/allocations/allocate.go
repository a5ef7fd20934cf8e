package allocations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/await"
	"github.com/forewarm/forewarm/cli/explain"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewAllocateCommand is the command allocate.
func NewAllocateCommand(a *app.App) *cobra.Command {
	var in contract.AllocationCreate
	var lease flags.Span
	c := &cobra.Command{
		Use: "allocate --gpus N (--pool P | --model M | --region R …)", Short: "Get GPUs now, under a lease",
		Long: `Get GPUs now, under a lease.

With --wait, the command asks a full pool again and again until --timeout. That is not a place in a queue: GPUs that
come free go to the next request. To queue, use forewarm reserve --on-full queue. The time until there was room is part
of the allocation's wait in all reports, unless the request has an idempotency key of yours.`,
		Args: flags.NoArgs, Annotations: map[string]string{app.Waits: "yes", "noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.NeedGPUs(cmd); err != nil {
				return err
			}
			in.LeaseSeconds = lease.Seconds()
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			switch {
			case a.Planning:
				return plans.Make(a, cmd, api, contract.PlanAllocate, in)
			case a.Explaining:
				return explain.Ask(a, cmd, api, contract.ExplainRequest{Allocation: &in})
			}
			if lease.Duration() > longLease {
				if err := AgreeToCost(a, cmd, func(ctx context.Context) (contract.Allocation, error) {
					return api.Allocate(ctx, in, client.Options{DryRun: true})
				}); err != nil {
					return err
				}
			}
			got, err := await.AllocateGPUs(a, cmd, api, in)
			if err != nil {
				return err
			}
			return ShowAllocated(a, cmd, api, got)
		},
	}
	f := c.Flags()
	f.IntVar(&in.GPUs, "gpus", 0, "how many")
	flags.BindLayout(f, &in.Layout)
	f.StringVar(&in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&in.Pool, "pool", "",
		"id or name of a pool (default any that fits: warm ones first, then the cheapest)")
	flags.BindNeeds(f, &in.Needs)
	f.StringVar(&in.Workload, "workload", "", "online or batch (default online)")
	f.Var(&lease, "for", "length of the lease (default 1h)")
	f.StringVar(&in.Name, "name", "", "what to call it")
	return c
}

// ShowAllocated waits, if it was asked to, and shows an allocation.
func ShowAllocated(a *app.App, cmd *cobra.Command, api *client.Client, got contract.Allocation) error {
	if a.Flags.DryRun {
		a.Say(cmd, "Dry run: nothing was changed.")
		return output.One(a, cmd, View, got)
	}
	if a.Flags.Wait {
		var err error
		if got, err = await.Allocation(a, cmd, api, got); err != nil {
			return err
		}
	}
	got = entered(cmd.Context(), api, got)
	if err := output.One(a, cmd, View, got); err != nil {
		return err
	}
	a.Say(cmd, "%s", plans.NextCommands(got))
	return nil
}
