package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// reportView never shows one of the two numbers without the other.
var reportView = view[contract.Report]{
	name: func(x contract.Report) string { return stamp(x.From) + "/" + stamp(x.To) },
	columns: []column[contract.Report]{
		{head: "ZERO-WAIT RATE", cell: func(x contract.Report) string {
			return fmt.Sprintf("%s (%d of %d starts waited at most 5s)", percent(x.ZeroWaitRate), x.ZeroWaitStarts, x.Starts)
		}},
		{head: "IDLE WASTE", cell: func(x contract.Report) string {
			return fmt.Sprintf("%s (%s of all node cost: idle %s, booting %s)", money(x.IdleWaste), percent(x.IdleWasteShare), money(x.IdleCost), money(x.BootCost))
		}},
		{head: "WAIT", cell: func(x contract.Report) string { return fmt.Sprintf("mean %.1fs, p95 %.1fs", x.MeanWait, x.P95Wait) }},
		{head: "BUSY", cell: func(x contract.Report) string {
			return fmt.Sprintf("%s, %s GPU-hours (idle %s, booting %s)", money(x.BusyCost), hours(x.BusyGPUHours), hours(x.IdleGPUHours), hours(x.BootGPUHours))
		}},
		{head: "FROM", cell: func(x contract.Report) string { return stamp(x.From) }},
		{head: "TO", cell: func(x contract.Report) string { return stamp(x.To) }},
	},
}

func hours(h float64) string { return strconv.FormatFloat(h, 'f', 2, 64) }

func (a *app) report() *cobra.Command {
	last := span(7 * 24 * time.Hour)
	c := &cobra.Command{
		Use: "report", Short: "See the two numbers: how often nobody waited, and what that cost", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.client()
			if err != nil {
				return err
			}
			now := a.clock.Now()
			got, err := api.Report(cmd.Context(), now.Add(-last.std()), now)
			if err != nil {
				return err
			}
			return one(a, cmd, reportView, got)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 1d")
	c.AddCommand(a.calibration())
	return c
}

// overview is one screen.
type overview struct {
	Server  string           `json:"server"`
	Version contract.Build   `json:"version"`
	Whoami  *contract.Whoami `json:"whoami,omitempty"`
	Report  *contract.Report `json:"report,omitempty"`
	Pools   []contract.Pool  `json:"pools"`
}

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "See the server, the two numbers and the pools on one screen", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.overview(cmd)
			if err != nil {
				return err
			}
			if a.flags.output != table && a.flags.output != wide {
				return one(a, cmd, view[overview]{name: func(o overview) string { return o.Server }}, o)
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "Forewarm %s at %s · role %s\n\n", badge(o.Version.Version, o.Version.Simulation), o.Server, o.Whoami.Role)
			if err := one(a, cmd, view[contract.Report]{columns: reportView.columns[:2]}, *o.Report); err != nil {
				return err
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout())
			return list(a, cmd, poolView, o.Pools)
		},
	}
}

func (a *app) overview(cmd *cobra.Command) (overview, error) {
	t, err := a.target()
	if err != nil {
		return overview{}, err
	}
	o := overview{Server: t.Server, Pools: []contract.Pool{}}
	api, err := a.client()
	if err != nil {
		return o, err
	}
	if o.Version, err = api.Version(cmd.Context()); err != nil {
		return o, err
	}
	who, err := api.Whoami(cmd.Context())
	if err != nil {
		return o, err
	}
	report, err := api.Report(cmd.Context(), time.Time{}, time.Time{})
	if err != nil {
		return o, err
	}
	pools, err := client.All(api.Pools(cmd.Context(), client.Filter{}))
	o.Whoami, o.Report = &who, &report
	o.Pools = append(o.Pools, pools...)
	return o, err
}
