// Package calendar shows when a pool has room.
package calendar

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/contract"
)

// stepView shows steps in a zone; nil is UTC, as everywhere.
func stepView(zone *time.Location) output.View[contract.CalendarStep] {
	at := func(t time.Time) string {
		if zone == nil {
			return format.Time(t)
		}
		return t.In(zone).Format(time.RFC3339)
	}
	v := stepColumns
	v.Columns = slices.Clone(v.Columns)
	v.Columns[0].Cell = func(x contract.CalendarStep) string { return at(x.Start) }
	v.Columns[1].Cell = func(x contract.CalendarStep) string { return at(x.End) }
	return v
}

var stepColumns = output.View[contract.CalendarStep]{
	Name: func(x contract.CalendarStep) string { return format.Time(x.Start) },
	Columns: []output.Column[contract.CalendarStep]{
		{Head: "START"},
		{Head: "END"},
		{Head: "FREE GPUS", Right: true,
			Cell: func(x contract.CalendarStep) string { return strconv.Itoa(x.FreeGPUs) }},
		{Head: "FREE NODES", Right: true,
			Cell: func(x contract.CalendarStep) string { return strconv.Itoa(x.FreeNodes) }},
		{Head: "LARGEST", Right: true, Cell: func(x contract.CalendarStep) string { return format.Shape(x.Largest) }},
		{Head: "ONLINE", Right: true, Cell: func(x contract.CalendarStep) string { return workloadText(x, 0) },
			Wide: true},
		{Head: "BATCH", Right: true, Cell: func(x contract.CalendarStep) string { return workloadText(x, 1) },
			Wide: true},
	},
}

// workloadText renders what a workload of a split pool may still have.
func workloadText(x contract.CalendarStep, i int) string {
	if i >= len(x.Workloads) {
		return "-"
	}
	return fmt.Sprintf("%d of %d", x.Workloads[i].Free, x.Workloads[i].Share)
}

// NewCommand is the command calendar.
func NewCommand(a *app.App) *cobra.Command {
	var from, zone string
	length, step := flags.Span(24*time.Hour), flags.Duration(time.Hour)
	c := &cobra.Command{
		Use: "calendar POOL", Short: "See when a pool has room", Args: flags.ExactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := a.Clock.Now()
			in, err := a.Zone(cmd, zone)
			if err != nil {
				return err
			}
			if from != "" {
				if start, err = when.Parse(from, start, in); err != nil {
					return when.BlameFlag(cmd, "from", err)
				}
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Calendar(cmd.Context(), args[0], start, start.Add(length.Duration()), step.Duration())
			if err != nil {
				return err
			}
			if a.Flags.Output == output.JSON || a.Flags.Output == output.YAML {
				return output.One(a, cmd, output.View[contract.Calendar]{}, got)
			}
			if zone == "" {
				in = nil
			}
			return output.List(a, cmd, stepView(in), got.Steps)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "start, such as 'mon 08:00' (default now)")
	f.StringVar(&zone, "tz", "",
		"time zone of --from (default the machine's) and of the times shown (default UTC)")
	f.Var(&length, "for", "how far")
	f.Var(&step, "step", "length of a step; 0s: one at each change")
	return c
}
