package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// forBoots says what is counted where clusters place work: its waits for priority, limits or
// resources are told apart, and are not against Forewarm.
func forBoots(x contract.Report) string {
	if len(x.Waits) == 0 {
		return ""
	}
	return " for GPUs or a boot"
}

// View never shows one of the two numbers without the other.
var View = output.View[contract.Report]{
	Name: func(x contract.Report) string { return format.Time(x.From) + "/" + format.Time(x.To) },
	Columns: []output.Column[contract.Report]{
		{Head: "ZERO-WAIT RATE", Cell: func(x contract.Report) string {
			return fmt.Sprintf("%s (%d of %s waited at most 5s%s)", format.Percent(x.ZeroWaitRate), x.ZeroWaitStarts,
				format.Count(x.Starts, "start"), forBoots(x))
		}},
		{Head: "IDLE WASTE", Cell: func(x contract.Report) string {
			return wasteText(x)
		}},
		{Head: "WAIT", Cell: func(x contract.Report) string {
			return fmt.Sprintf("mean %.1fs, p95 %.1fs", x.MeanWait,
				x.P95Wait)
		}},
		{Head: "BUSY", Cell: func(x contract.Report) string {
			busy := fmt.Sprintf("%s, %s GPU-hours", format.Money(x.BusyCost), format.Hours(x.BusyGPUHours))
			if x.IdleGPUHours == nil || x.BootGPUHours == nil {
				return busy
			}
			return busy +
				fmt.Sprintf(" (idle %s, booting %s)", format.Hours(*x.IdleGPUHours), format.Hours(*x.BootGPUHours))
		}},
		{Head: "FROM", Cell: func(x contract.Report) string { return format.Time(x.From) }},
		{Head: "TO", Cell: func(x contract.Report) string { return format.Time(x.To) }},
	},
}

// viewOf is View, with what work in observed pools waited for where there was any, and with
// what the GPUs did where somebody looked.
func viewOf(x contract.Report) output.View[contract.Report] {
	view := View
	if isLookedAt(x.Activity) {
		view.Columns = slices.Insert(slices.Clone(view.Columns), 4, output.Column[contract.Report]{Head: "WHILE HELD",
			Cell: func(x contract.Report) string { return activityText(x.Activity) }})
	}
	if len(x.Waits) == 0 {
		return view
	}
	view.Columns = slices.Insert(slices.Clone(view.Columns), 3, output.Column[contract.Report]{Head: "WAITED FOR",
		Cell: func(x contract.Report) string {
			var parts []string
			for _, waits := range x.Waits {
				parts = append(parts, format.Plain(waits.Reason)+" "+format.Waits(waits))
			}
			return strings.Join(parts, "; ")
		}})
	return view
}

// wasteText is the second of the two numbers, which only who sees all nodes is told.
func wasteText(x contract.Report) string {
	if x.IdleWaste == nil || x.IdleCost == nil || x.BootCost == nil {
		return "only operators see this: nodes are shared"
	}
	parts := fmt.Sprintf("idle %s, booting and removal %s", format.Money(*x.IdleCost), format.Money(*x.BootCost))
	if isSpent(x.MinBillingCost) {
		parts += ", minimum billing " + format.Money(*x.MinBillingCost)
	}
	if isSpent(x.OrphanCost) {
		parts += ", orphans " + format.Money(*x.OrphanCost)
	}
	all := "all node cost"
	if x.TotalCost != nil {
		all = format.Money(*x.TotalCost) + " in all"
	}
	return fmt.Sprintf("%s (%s of %s: %s)", format.Money(*x.IdleWaste), format.Percent(x.IdleWasteShare), all, parts)
}

// isSpent says whether an amount is there and more than nothing.
func isSpent(m *contract.Money) bool {
	return m != nil && strings.Trim(m.Amount, "0.") != ""
}

// NewReportCommand is the command report.
func NewReportCommand(a *app.App) *cobra.Command {
	last := flags.Span(7 * 24 * time.Hour)
	c := &cobra.Command{
		Use: "report", Short: "See the two numbers: how many starts did not wait, and what that cost", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			now := a.Clock.Now()
			got, err := api.Report(cmd.Context(), now.Add(-last.Duration()), now)
			if err != nil {
				return err
			}
			return output.One(a, cmd, viewOf(got), got)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 1d")
	c.AddCommand(newCalibrationCommand(a))
	return c
}
