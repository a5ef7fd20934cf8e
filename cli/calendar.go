package cli

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

// stepView shows steps in a zone; nil is UTC, as everywhere.
func stepView(zone *time.Location) view[contract.CalendarStep] {
	at := func(t time.Time) string {
		if zone == nil {
			return formatTime(t)
		}
		return t.In(zone).Format(time.RFC3339)
	}
	v := stepColumns
	v.columns = slices.Clone(v.columns)
	v.columns[0].cell = func(x contract.CalendarStep) string { return at(x.Start) }
	v.columns[1].cell = func(x contract.CalendarStep) string { return at(x.End) }
	return v
}

var stepColumns = view[contract.CalendarStep]{
	name: func(x contract.CalendarStep) string { return formatTime(x.Start) },
	columns: []column[contract.CalendarStep]{
		{head: "START"},
		{head: "END"},
		{head: "FREE GPUS", right: true,
			cell: func(x contract.CalendarStep) string { return strconv.Itoa(x.FreeGPUs) }},
		{head: "FREE NODES", right: true,
			cell: func(x contract.CalendarStep) string { return strconv.Itoa(x.FreeNodes) }},
		{head: "LARGEST", right: true, cell: func(x contract.CalendarStep) string { return shapeText(x.Largest) }},
		{head: "ONLINE", right: true, cell: func(x contract.CalendarStep) string { return workloadText(x, 0) }, wide: true},
		{head: "BATCH", right: true, cell: func(x contract.CalendarStep) string { return workloadText(x, 1) }, wide: true},
	},
}

func shapeText(s contract.Shape) string {
	if s.Nodes == 0 {
		return "-"
	}
	if rest := s.GPUs - (s.Nodes-1)*s.GPUsPerNode; rest != s.GPUsPerNode {
		return fmt.Sprintf("%d×%d+%d", s.Nodes-1, s.GPUsPerNode, rest)
	}
	return fmt.Sprintf("%d×%d", s.Nodes, s.GPUsPerNode)
}

// workloadText renders what a workload of a split pool may still have.
func workloadText(x contract.CalendarStep, i int) string {
	if i >= len(x.Workloads) {
		return "-"
	}
	return fmt.Sprintf("%d of %d", x.Workloads[i].Free, x.Workloads[i].Share)
}

func (a *app) newCalendarCommand() *cobra.Command {
	var from, zone string
	length, step := span(24*time.Hour), duration(time.Hour)
	c := &cobra.Command{
		Use: "calendar POOL", Short: "See when a pool has room", Args: exactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := a.clock.Now()
			in, err := a.findZone(cmd, zone)
			if err != nil {
				return err
			}
			if from != "" {
				if start, err = parseTime(from, start, in); err != nil {
					return blameFlag(cmd, "from", err)
				}
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Calendar(cmd.Context(), args[0], start, start.Add(length.std()), step.std())
			if err != nil {
				return err
			}
			if a.flags.output == asJSON || a.flags.output == asYAML {
				return showOne(a, cmd, view[contract.Calendar]{}, got)
			}
			if zone == "" {
				in = nil
			}
			return showList(a, cmd, stepView(in), got.Steps)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "start, such as 'mon 08:00' (default now)")
	f.StringVar(&zone, "tz", "",
		"time zone of --from (default the machine's), and that times are shown in (default UTC)")
	f.Var(&length, "for", "how far")
	f.Var(&step, "step", "length of a step; 0s: one at each change")
	return c
}
