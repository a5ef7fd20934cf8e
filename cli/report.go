package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

// reportView never shows one of the two numbers without the other.
var reportView = view[contract.Report]{
	name: func(x contract.Report) string { return formatTime(x.From) + "/" + formatTime(x.To) },
	columns: []column[contract.Report]{
		{head: "ZERO-WAIT RATE", cell: func(x contract.Report) string {
			return fmt.Sprintf("%s (%d of %s waited at most 5s)", formatPercent(x.ZeroWaitRate), x.ZeroWaitStarts,
				formatCount(x.Starts, "start"))
		}},
		{head: "IDLE WASTE", cell: func(x contract.Report) string {
			return wasteText(x)
		}},
		{head: "WAIT", cell: func(x contract.Report) string {
			return fmt.Sprintf("mean %.1fs, p95 %.1fs", x.MeanWait,
				x.P95Wait)
		}},
		{head: "BUSY", cell: func(x contract.Report) string {
			busy := fmt.Sprintf("%s, %s GPU-hours", formatMoney(x.BusyCost), formatHours(x.BusyGPUHours))
			if x.IdleGPUHours == nil || x.BootGPUHours == nil {
				return busy
			}
			return busy + fmt.Sprintf(" (idle %s, booting %s)", formatHours(*x.IdleGPUHours), formatHours(*x.BootGPUHours))
		}},
		{head: "FROM", cell: func(x contract.Report) string { return formatTime(x.From) }},
		{head: "TO", cell: func(x contract.Report) string { return formatTime(x.To) }},
	},
}

// wasteText is the second of the two numbers, which only who sees all nodes is told.
func wasteText(x contract.Report) string {
	if x.IdleWaste == nil || x.IdleCost == nil || x.BootCost == nil {
		return "for operators to see: nodes are shared"
	}
	parts := fmt.Sprintf("idle %s, booting and removal %s", formatMoney(*x.IdleCost), formatMoney(*x.BootCost))
	if isSpent(x.MinBillingCost) {
		parts += ", minimum billing " + formatMoney(*x.MinBillingCost)
	}
	if isSpent(x.OrphanCost) {
		parts += ", orphans " + formatMoney(*x.OrphanCost)
	}
	all := "all node cost"
	if x.TotalCost != nil {
		all = formatMoney(*x.TotalCost) + " in all"
	}
	return fmt.Sprintf("%s (%s of %s: %s)", formatMoney(*x.IdleWaste), formatPercent(x.IdleWasteShare), all, parts)
}

// isSpent says whether an amount is there and more than nothing.
func isSpent(m *contract.Money) bool {
	return m != nil && strings.Trim(m.Amount, "0.") != ""
}

func formatHours(h float64) string { return strconv.FormatFloat(h, 'f', 2, 64) }

func (a *app) newReportCommand() *cobra.Command {
	last := span(7 * 24 * time.Hour)
	c := &cobra.Command{
		Use: "report", Short: "See the two numbers: how often nobody waited, and what that cost", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			now := a.clock.Now()
			got, err := api.Report(cmd.Context(), now.Add(-last.std()), now)
			if err != nil {
				return err
			}
			return showOne(a, cmd, reportView, got)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 1d")
	c.AddCommand(a.newCalibrationCommand())
	return c
}
