package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

// costView has one line for each payer and cause. The share of the total is set
// by the command, which knows it.
func costView(total contract.Money, items []contract.CostLine) view[contract.CostLine] {
	payers := sharedNames(items)
	return view[contract.CostLine]{
		name: func(x contract.CostLine) string { return x.Payer + "/" + firstNonEmpty(x.OrganizationID, x.Cause) },
		columns: []column[contract.CostLine]{
			{head: "PAYER", cell: func(x contract.CostLine) string { return strings.ReplaceAll(x.Payer, "_", " ") }},
			{head: "FOR", cell: func(x contract.CostLine) string {
				if payers[x.OrganizationName] {
					return x.OrganizationName + " (" + x.OrganizationID + ")"
				}
				return orDash(firstNonEmpty(x.OrganizationName, x.OrganizationID, strings.ReplaceAll(x.Cause, "_", " ")))
			}},
			{head: "POOL", cell: func(x contract.CostLine) string { return orDash(firstNonEmpty(x.PoolName, x.PoolID)) },
				wide: true},
			{head: "PROVISIONER", cell: func(x contract.CostLine) string { return orDash(x.Provisioner) }, wide: true},
			{head: "MACHINES", right: true, cell: func(x contract.CostLine) string { return strconv.Itoa(x.Machines) }},
			{head: "GPU-HOURS", right: true, cell: func(x contract.CostLine) string { return formatHours(x.GPUHours) }},
			{head: "COST", right: true, cell: func(x contract.CostLine) string { return formatMoney(x.Amount) }},
			{head: "SHARE", right: true,
				cell: func(x contract.CostLine) string { return formatPercent(shareOf(x.Amount, total)) }},
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

func (a *app) newCostsCommand() *cobra.Command {
	last := span(7 * 24 * time.Hour)
	var by string
	c := &cobra.Command{
		Use: "costs", Short: "See what machines cost, who pays for them, and what for", Args: noArgs,
		Long: `Every moment of every GPU is in one line, so that the lines add up to the providers' bill, and to what
forewarm report shows as busy and idle waste. A tenant pays for the time for which it held GPUs, at their
machine's price: what its allocations cost, as long as the pool has one price.

tenant      somebody held it
warm pool   nobody did: the price of being ready
  boot          until the machine was proved usable
  failed boot   the whole life of a machine that never was
  early warm    ready before somebody came
  late release  ready after the last one left, until it was given up
  unused        ready, and nobody ever came for this GPU
  no show       ready for a reservation whose owner did not come
  quarantined   kept out of use and not held, until it was resumed or given up
  removal       from giving it up until it was gone
  min billing   what the provider's minimum adds to a machine that lived shorter
orphan      a machine that no node stood for`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by != "" && by != "pool" && by != "provisioner" {
				return usageErrorf("forewarm costs --by pool", "--by %q is neither pool nor provisioner", by)
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			now := a.clock.Now()
			got, err := api.Costs(cmd.Context(), now.Add(-last.std()), now, by)
			if err != nil {
				return err
			}
			return a.showCosts(cmd, got, by)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 1d")
	c.Flags().StringVar(&by, "by", "", "lines of their own for each pool or provisioner")
	return c
}

func (a *app) showCosts(cmd *cobra.Command, got contract.CostReport, by string) error {
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd,
			view[contract.CostReport]{name: func(x contract.CostReport) string {
				return formatTime(x.From) + "/" +
					formatTime(x.To)
			}}, got)
	}
	v := costView(got.Total, got.Items)
	for i := range v.columns {
		if strings.EqualFold(v.columns[i].head, by) {
			v.columns[i].wide = false
		}
	}
	if err := showList(a, cmd, v, got.Items); err != nil || len(got.Items) == 0 {
		return err
	}
	if got.WarmPool == nil || got.Orphans == nil {
		_, err := fmt.Fprintf(cmd.OutOrStdout(),
			"\n%s in all, for GPUs that were held; what being ready costs is for operators to see\n", formatMoney(got.Total))
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s in all: tenants %s, warm pool %s, orphans %s\n",
		formatMoney(got.Total), formatMoney(got.Tenants), formatMoney(*got.WarmPool), formatMoney(*got.Orphans))
	return err
}
