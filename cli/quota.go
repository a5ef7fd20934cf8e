package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var quotaView = view[contract.Quota]{
	name: func(x contract.Quota) string { return x.OrganizationID },
	columns: []column[contract.Quota]{
		{head: "ORGANIZATION",
			cell: func(x contract.Quota) string { return firstNonEmpty(x.OrganizationName, x.OrganizationID) }},
		{head: "MAX GPUS", cell: func(x contract.Quota) string { return strconv.Itoa(x.Limits.MaxGPUs) }},
		{head: "GPU MEMORY", cell: func(x contract.Quota) string { return limitText(x.Limits.MaxGPUMemoryMiB, "MiB") }},
		{head: "CPUS", cell: func(x contract.Quota) string { return limitText(x.Limits.MaxCPUs, "") }},
		{head: "MEMORY", cell: func(x contract.Quota) string { return limitText(x.Limits.MaxMemoryMiB, "MiB") }},
		{head: "BOOKINGS", cell: func(x contract.Quota) string { return limitText(x.Limits.MaxBookings, "") }},
		{head: "GPU-HOURS",
			cell: func(x contract.Quota) string { return limitText(x.Limits.GPUHours, " a "+x.Limits.Period) }},
		{head: "MONEY", cell: func(x contract.Quota) string { return spendingText(x.Limits) }},
		{head: "SPECULATION/DAY", cell: func(x contract.Quota) string { return formatMoney(x.Limits.SpeculationPerDay) }},
		{head: "COHORT", cell: func(x contract.Quota) string { return orDash(x.Limits.Cohort) }},
		{head: "BORROWING", cell: func(x contract.Quota) string { return boundsText(x.Limits, x.Limits.Borrowing) }},
		{head: "LENDING", cell: func(x contract.Quota) string { return boundsText(x.Limits, x.Limits.Lending) }},
		{head: "WEIGHT", cell: func(x contract.Quota) string { return strconv.Itoa(x.Limits.Weight) }},
	},
}

// limitText renders a limit that may be absent.
func limitText(n *int64, unit string) string {
	if n == nil {
		return "no limit"
	}
	return strconv.FormatInt(*n, 10) + unit
}

func spendingText(l contract.Limits) string {
	if l.Money == nil {
		return "no limit"
	}
	return formatMoney(*l.Money) + " a " + l.Period
}

// boundsText renders what may be borrowed or lent.
func boundsText(l contract.Limits, b contract.Bounds) string {
	if l.Cohort == "" {
		return "-"
	}
	var texts []string
	for _, one := range []struct {
		of string
		n  *int64
	}{{"GPUs", b.GPUs}, {"MiB of GPU memory", b.GPUMemoryMiB}, {"CPUs", b.CPUs}, {"MiB of memory", b.MemoryMiB},
		{"bookings", b.Bookings}} {
		if one.n != nil {
			texts = append(texts, fmt.Sprintf("%d %s", *one.n, one.of))
		}
	}
	if len(texts) == 0 {
		return "no limit"
	}
	return "at most " + strings.Join(texts, ", ")
}

var usageView = view[contract.ResourceUsage]{
	name: func(x contract.ResourceUsage) string { return x.Resource },
	columns: []column[contract.ResourceUsage]{
		{head: "RESOURCE", cell: func(x contract.ResourceUsage) string { return x.Resource }},
		{head: "NOW", right: true, cell: func(x contract.ResourceUsage) string { return strconv.FormatInt(x.Now, 10) }},
		{head: "PEAK", right: true,
			cell: func(x contract.ResourceUsage) string { return strconv.FormatInt(x.Peak, 10) }},
		{head: "LIMIT", right: true, cell: func(x contract.ResourceUsage) string { return limitText(x.Limit, "") }},
		{head: "WITH BORROWING", right: true,
			cell: func(x contract.ResourceUsage) string { return limitText(x.Ceiling, "") }},
	},
}

var riskView = view[contract.PromiseAtRisk]{
	name: func(x contract.PromiseAtRisk) string { return x.ID },
	columns: []column[contract.PromiseAtRisk]{
		{head: "BEYOND THE QUOTA", cell: func(x contract.PromiseAtRisk) string { return x.ID }},
		{head: "GPUS", right: true, cell: func(x contract.PromiseAtRisk) string { return strconv.Itoa(x.GPUs) }},
		{head: "START", cell: func(x contract.PromiseAtRisk) string { return formatTime(x.Start) }},
		{head: "END", cell: func(x contract.PromiseAtRisk) string { return formatTime(x.End) }},
		{head: "LIMIT", cell: func(x contract.PromiseAtRisk) string { return firstBlocker(x) }},
	},
}

func firstBlocker(x contract.PromiseAtRisk) string {
	if len(x.Blockers) == 0 {
		return "-"
	}
	return x.Blockers[0].Message
}

func (a *app) newQuotaCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show what a tenant may hold, your own when left out", Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.resolveOrganization(cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Quota(cmd.Context(), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, quotaView, got)
		},
	}
	return newGroupCommand("quota", "See and set what tenants may hold and use", show, a.newSetQuotaCommand(), a.newQuotaUsageCommand())
}

func (a *app) newQuotaUsageCommand() *cobra.Command {
	ahead := 168
	c := &cobra.Command{
		Use: "usage [ORGANIZATION]", Short: "Show what a tenant holds, is promised and has used", Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.resolveOrganization(cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Usage(cmd.Context(), id, ahead)
			if err != nil {
				return err
			}
			return a.showUsage(cmd, got)
		},
	}
	c.Flags().IntVar(&ahead, "hours", ahead, "how far ahead the peak is looked for")
	return c
}

func (a *app) showUsage(cmd *cobra.Command, got contract.QuotaUsage) error {
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd,
			view[contract.QuotaUsage]{name: func(x contract.QuotaUsage) string { return x.OrganizationID }}, got)
	}
	if err := showList(a, cmd, usageView, got.Resources); err != nil {
		return err
	}
	p := got.Period
	limit := "no limit"
	if p.MoneyLimit != nil {
		limit = formatMoney(*p.MoneyLimit)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(),
		"\nThis %s (from %s)\nGPU-HOURS    %.1f of %s\nMONEY        %s of %s\nSPECULATION  %s of %s a day\n",
		p.Period, formatTime(p.Start), p.GPUHours, limitText(p.GPUHoursLimit, ""), formatMoney(p.Money), limit,
		formatMoney(got.Speculation), formatMoney(got.SpeculationLimit))
	return err
}

// quotaFlags are what forewarm quota set is told. A limit is a number, or none.
type quotaFlags struct {
	gpus, weight                    int
	memory, cpus, ram, bookings     string
	gpuHours, money, speculation    string
	cohort, period, borrow, lending string
	force                           bool
}

func (a *app) newSetQuotaCommand() *cobra.Command {
	var q quotaFlags
	c := &cobra.Command{
		Use: "set ORGANIZATION", Short: "Change what a tenant may hold, at once (operators)",
		Args: exactArgs("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !anyChanged(cmd.LocalNonPersistentFlags(), "force") {
				return usageErrorf("forewarm quota set --help", "there is nothing to change")
			}
			api, err := a.newClient()
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
			return a.changeQuota(cmd, api, now, q.force)
		},
	}
	f := c.Flags()
	f.IntVar(&q.gpus, "max-gpus", 0, "GPUs held and promised at once")
	f.StringVar(&q.memory, "max-gpu-memory-mib", "", "memory of GPUs at once, or none")
	f.StringVar(&q.cpus, "max-cpus", "", "CPUs at once, or none")
	f.StringVar(&q.ram, "max-memory-mib", "", "memory of nodes at once, or none")
	f.StringVar(&q.bookings, "max-bookings", "", "reservations and allocations at once, or none")
	f.StringVar(&q.period, "period", "", "day or month: what --gpu-hours and --money are for")
	f.StringVar(&q.gpuHours, "gpu-hours", "", "GPU-hours of what starts in a period, or none")
	f.StringVar(&q.money, "money", "", "USD of what starts in a period, or none")
	f.StringVar(&q.speculation, "speculation-per-day", "", "USD of speculative reservations a UTC day")
	f.StringVar(&q.cohort, "cohort", "", "tenants that lend each other what they do not use; '' leaves it")
	f.StringVar(&q.borrow, "borrowing", "", "GPUs that it may borrow from its cohort, or none for no limit")
	f.StringVar(&q.lending, "lending", "", "GPUs that its cohort may borrow from it, or none for no limit")
	f.IntVar(&q.weight, "weight", 1, "of its fair share")
	f.BoolVar(&q.force, "force", false, "also when promises are beyond the new limits: they are marked degraded")
	return c
}

// anyChanged reports whether any flag was given besides one.
func anyChanged(f *pflag.FlagSet, except string) bool {
	given := false
	f.VisitAll(func(flag *pflag.Flag) { given = given || flag.Changed && flag.Name != except })
	return given
}

// changeLimits puts the flags that were given into the limits there are.
func (q quotaFlags) changeLimits(cmd *cobra.Command, l *contract.Limits) error {
	given := cmd.Flags().Changed
	if given("max-gpus") {
		l.MaxGPUs = q.gpus
	}
	if given("weight") {
		if l.Weight = q.weight; l.Weight < 1 {
			return usageErrorf("forewarm quota set --help", "--weight must be at least 1")
		}
	}
	if given("period") {
		l.Period = q.period
	}
	if given("speculation-per-day") {
		l.SpeculationPerDay = parseDollars(q.speculation)
	}
	if given("cohort") {
		if l.Cohort = q.cohort; q.cohort == "" {
			l.Borrowing, l.Lending = contract.Bounds{}, contract.Bounds{}
		}
	}
	if given("money") {
		if l.Money = nil; q.money != "none" {
			m := parseDollars(q.money)
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
			if err := setLimit(cmd, one.flag, one.text, one.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// setLimit reads a number, or none.
func setLimit(cmd *cobra.Command, flag, text string, to **int64) error {
	if text == "none" {
		*to = nil
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return usageErrorf(cmd.CommandPath()+" --help", "--%s %q is neither a number nor none", flag, text)
	}
	*to = &n
	return nil
}

func (a *app) changeQuota(cmd *cobra.Command, api *client.Client, now contract.Quota, force bool) error {
	if a.previewsOnly() {
		return a.makePlan(cmd, api, contract.PlanQuota, contract.PlannedQuota{
			OrganizationID: now.OrganizationID, Version: now.Version, Limits: now.Limits, Force: force,
		})
	}
	got, err := api.SetQuota(a.withIdempotencyKey(cmd.Context()), now.OrganizationID, now.Version, now.Limits, force)
	if err != nil {
		return err
	}
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd,
			view[contract.QuotaChanged]{name: func(x contract.QuotaChanged) string { return x.Quota.OrganizationID }},
			got)
	}
	if err := showOne(a, cmd, quotaView, got.Quota); err != nil {
		return err
	}
	if len(got.Degraded) > 0 {
		_, _ = fmt.Fprintln(cmd.OutOrStdout())
		if err := showList(a, cmd, riskView, got.Degraded); err != nil {
			return err
		}
	}
	if n := len(got.Restored); n > 0 {
		a.say(cmd, "%s %s within the quota again.", formatCount(n, "promise"), isOrAre(n))
	}
	return nil
}
