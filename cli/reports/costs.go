package reports

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// costView has one line for each payer and cause. The share of the total is set
// by the command, which knows it.
func costView(total contract.Money, items []contract.CostLine) output.View[contract.CostLine] {
	payers := sharedNames(items)
	return output.View[contract.CostLine]{
		Name: func(x contract.CostLine) string { return x.Payer + "/" + cmp.Or(x.OrganizationID, x.Cause) },
		Columns: []output.Column[contract.CostLine]{
			{Head: "PAYER", Cell: func(x contract.CostLine) string { return strings.ReplaceAll(x.Payer, "_", " ") }},
			{Head: "FOR", Cell: func(x contract.CostLine) string {
				if payers[x.OrganizationName] {
					return x.OrganizationName + " (" + x.OrganizationID + ")"
				}
				return format.OrDash(
					cmp.Or(x.OrganizationName, x.OrganizationID, strings.ReplaceAll(x.Cause, "_", " ")))
			}},
			{Head: "POOL",
				Cell: func(x contract.CostLine) string { return format.OrDash(cmp.Or(x.PoolName, x.PoolID)) },
				Wide: true},
			{Head: "PROVISIONER", Cell: func(x contract.CostLine) string { return format.OrDash(x.Provisioner) },
				Wide: true},
			{Head: "MACHINES", Right: true, Cell: func(x contract.CostLine) string { return strconv.Itoa(x.Machines) }},
			{Head: "GPU-HOURS", Right: true,
				Cell: func(x contract.CostLine) string { return format.Hours(x.GPUHours) }},
			{Head: "IDLE", Right: true, Cell: idleText, Wide: true},
			{Head: "NOT OBSERVED", Right: true, Cell: unobservedText, Wide: true},
			{Head: "COST", Right: true, Cell: func(x contract.CostLine) string { return format.Money(x.Amount) }},
			{Head: "SHARE", Right: true,
				Cell: func(x contract.CostLine) string { return format.Percent(shareOf(x.Amount, total)) }},
		},
	}
}

// sharedNames are the names that several organizations have, of which all but one
// are deleted.
func sharedNames(items []contract.CostLine) map[string]bool {
	ids, several := map[string]string{}, map[string]bool{}
	for _, x := range items {
		if id, known := ids[x.OrganizationName]; known && id != x.OrganizationID {
			several[x.OrganizationName] = true
		}
		if x.OrganizationName != "" {
			ids[x.OrganizationName] = x.OrganizationID
		}
	}
	return several
}

// shareOf is an amount's share of a total, nil where there is none.
func shareOf(amount, total contract.Money) *float64 {
	a, err1 := strconv.ParseFloat(amount.Amount, 64)
	t, err2 := strconv.ParseFloat(total.Amount, 64)
	if err1 != nil || err2 != nil || t == 0 {
		return nil
	}
	share := a / t
	return &share
}

// NewCostsCommand is the command costs.
func NewCostsCommand(a *app.App) *cobra.Command {
	last := flags.Span(7 * 24 * time.Hour)
	var by string
	c := &cobra.Command{
		Use: "costs", Short: "See what machines cost, who pays for them, and why", Args: flags.NoArgs,
		Long: `Every moment of every GPU is in exactly one line. So the lines add up to the providers' bill, and to the busy
time and idle waste that forewarm report shows. A tenant pays for the time for which it held GPUs, at the price
of their machine; that is what its allocations cost, as long as the pool has one price.

tenant      somebody held it; -o wide says for how many GPU-hours it was idle then, as the daemons of the
            nodes told, and for how many nobody looked
warm pool   nobody held it: the price of being ready
  boot          until the machine was proved usable
  failed boot   the whole life of a machine that never became usable
  early warm    ready before its first holder came
  late release  ready after its last holder left, until it was given up
  unused        ready, but nobody ever held this GPU
  no show       ready for a reservation whose owner did not come
  quarantined   kept out of use and not held, until it was resumed or given up
  removal       from giving it up until it was gone
  min billing   what the provider's minimum billing adds to a short-lived machine
orphan      a machine without a node`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by != "" && by != "pool" && by != "provisioner" {
				return exit.UsageErrorf("forewarm costs --by pool", "--by %q is neither pool nor provisioner", by)
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			now := a.Clock.Now()
			got, err := api.Costs(cmd.Context(), now.Add(-last.Duration()), now, by)
			if err != nil {
				return err
			}
			return showCosts(a, cmd, got, by)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 1d")
	c.Flags().StringVar(&by, "by", "", "separate lines for each pool or provisioner")
	return c
}

func showCosts(a *app.App, cmd *cobra.Command, got contract.CostReport, by string) error {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd,
			output.View[contract.CostReport]{Name: func(x contract.CostReport) string {
				return format.Time(x.From) + "/" +
					format.Time(x.To)
			}}, got)
	}
	v := costView(got.Total, got.Items)
	for i := range v.Columns {
		if strings.EqualFold(v.Columns[i].Head, by) {
			v.Columns[i].Wide = false
		}
	}
	if err := output.List(a, cmd, v, got.Items); err != nil || len(got.Items) == 0 {
		return err
	}
	if got.WarmPool == nil || got.Orphans == nil {
		_, err := fmt.Fprintf(cmd.OutOrStdout(),
			"\n%s in all, for GPUs that were held; only operators see what being ready costs\n",
			format.Money(got.Total))
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s in all: tenants %s, warm pool %s, orphans %s\n",
		format.Money(got.Total), format.Money(got.Tenants), format.Money(*got.WarmPool), format.Money(*got.Orphans))
	return err
}
