package quota

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// setOptions are what forewarm quota set is told. A limit is a number, or none.
type setOptions struct {
	gpus, weight                    int
	memory, cpus, ram, bookings     string
	gpuHours, money, speculation    string
	cohort, period, borrow, lending string
	force                           bool
}

// NewSetCommand is the command quota set.
func NewSetCommand(a *app.App) *cobra.Command {
	var q setOptions
	c := &cobra.Command{
		Use: "set ORGANIZATION", Short: "Change a tenant's limits, with immediate effect (operators)",
		Args: flags.ExactArgs("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !flags.AnyChanged(cmd.LocalNonPersistentFlags(), "force") {
				return exit.UsageErrorf(cmd.CommandPath()+" --help", "there is nothing to change")
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			now, err := api.Quota(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err = q.changeLimits(cmd, &now.Limits); err != nil {
				return err
			}
			return changeQuota(a, cmd, api, now, q.force)
		},
	}
	f := c.Flags()
	f.IntVar(&q.gpus, "max-gpus", 0, "GPUs held and promised at once")
	f.StringVar(&q.memory, "max-gpu-memory-mib", "", "memory of GPUs at once, or none")
	f.StringVar(&q.cpus, "max-cpus", "", "CPUs at once, or none")
	f.StringVar(&q.ram, "max-memory-mib", "", "memory of nodes at once, or none")
	f.StringVar(&q.bookings, "max-bookings", "", "reservations and allocations at once, or none")
	f.StringVar(&q.period, "period", "", "day or month: the period of --gpu-hours and --money")
	f.StringVar(&q.gpuHours, "gpu-hours", "", "GPU-hours of bookings that start in one period, or none")
	f.StringVar(&q.money, "money", "", "USD of bookings that start in one period, or none")
	f.StringVar(&q.speculation, "speculation-per-day", "", "USD of speculative reservations per UTC day")
	f.StringVar(&q.cohort, "cohort", "", "cohort whose members lend each other what they do not use; '' leaves it")
	f.StringVar(&q.borrow, "borrowing", "", "GPUs that it may borrow from its cohort, or none for no limit")
	f.StringVar(&q.lending, "lending", "", "GPUs that its cohort may borrow from it, or none for no limit")
	f.IntVar(&q.weight, "weight", 0, "weight in fair share, from 1")
	f.BoolVar(&q.force, "force", false, "even if promises exceed the new limits; those are marked degraded")
	return c
}

// changeLimits puts the flags that were given into the limits there are.
func (q setOptions) changeLimits(cmd *cobra.Command, l *contract.Limits) error {
	given := cmd.Flags().Changed
	if given("max-gpus") {
		l.MaxGPUs = q.gpus
	}
	if given("weight") {
		if l.Weight = q.weight; l.Weight < 1 {
			return exit.UsageErrorf(cmd.CommandPath()+" --help", "--weight must be at least 1")
		}
	}
	if given("period") {
		l.Period = q.period
	}
	if given("speculation-per-day") {
		l.SpeculationPerDay = flags.ParseDollars(q.speculation)
	}
	if given("cohort") {
		if l.Cohort = q.cohort; q.cohort == "" {
			l.Borrowing, l.Lending = contract.Bounds{}, contract.Bounds{}
		}
	}
	if given("money") {
		if l.Money = nil; q.money != "none" {
			m := flags.ParseDollars(q.money)
			l.Money = &m
		}
	}
	for _, one := range []struct {
		flag, text string
		to         **int64
	}{
		{"max-gpu-memory-mib", q.memory, &l.MaxGPUMemoryMiB}, {"max-cpus", q.cpus, &l.MaxCPUs},
		{"max-memory-mib", q.ram, &l.MaxMemoryMiB},
		{"max-bookings", q.bookings, &l.MaxBookings}, {"gpu-hours", q.gpuHours, &l.GPUHours},
		{"borrowing", q.borrow, &l.Borrowing.GPUs}, {"lending", q.lending, &l.Lending.GPUs},
	} {
		if given(one.flag) {
			if err := flags.SetLimit(cmd, one.flag, one.text, one.to); err != nil {
				return err
			}
		}
	}
	return nil
}

func changeQuota(a *app.App, cmd *cobra.Command, api *client.Client, now contract.Quota, force bool) error {
	if a.PreviewsOnly() {
		return plans.Make(a, cmd, api, contract.PlanQuota, contract.PlannedQuota{
			OrganizationID: now.OrganizationID, Version: now.Version, Limits: now.Limits, Force: force,
		})
	}
	got, err := api.SetQuota(a.WithIdempotencyKey(cmd.Context()), now.OrganizationID, now.Version, now.Limits, force)
	if err != nil {
		return err
	}
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd,
			output.View[contract.QuotaChanged]{
				Name: func(x contract.QuotaChanged) string { return x.Quota.OrganizationID }},
			got)
	}
	if err := output.One(a, cmd, quotaView, got.Quota); err != nil {
		return err
	}
	if len(got.Degraded) > 0 {
		_, _ = fmt.Fprintln(cmd.OutOrStdout())
		if err := output.List(a, cmd, riskView, got.Degraded); err != nil {
			return err
		}
	}
	if n := len(got.Restored); n > 0 {
		a.Say(cmd, "%s %s within the quota again.", format.Count(n, "promise"), format.IsOrAre(n))
	}
	return nil
}
