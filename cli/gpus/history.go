package gpus

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

const (
	// longestHistory is how much the server keeps.
	longestHistory = 24 * time.Hour
	// leastStep is what all steps are multiples of.
	leastStep = 5 * time.Minute
	// mostSteps is how many steps are shown where nobody says how long they are.
	mostSteps = 24
)

// stepLengths are those among which one is chosen.
var stepLengths = []time.Duration{leastStep, 15 * time.Minute, 30 * time.Minute, time.Hour}

// historyColumns are how steps are shown, but for their times.
var historyColumns = []output.Column[contract.GPUHistoryStep]{
	{Head: "USE", Right: true, Cell: func(x contract.GPUHistoryStep) string { return intText(x.UtilizationMean, "%") }},
	{Head: "MOST", Right: true, Cell: func(x contract.GPUHistoryStep) string { return intText(x.UtilizationMax, "%") }},
	{Head: "MEMORY", Right: true, Cell: func(x contract.GPUHistoryStep) string { return memoryText(x.MemoryUsedMiBMean) }},
	{Head: "HOTTEST", Right: true, Cell: func(x contract.GPUHistoryStep) string { return intText(x.TemperatureMax, "C") }},
	{Head: "POWER", Right: true, Cell: func(x contract.GPUHistoryStep) string { return powerText(x.PowerMean) }},
}

// historyView shows steps in a zone; nil is UTC, as everywhere.
func historyView(zone *time.Location) output.View[contract.GPUHistoryStep] {
	at := func(x contract.GPUHistoryStep) string {
		if zone == nil {
			return format.Time(x.Start)
		}
		return x.Start.In(zone).Format(time.RFC3339)
	}
	return output.View[contract.GPUHistoryStep]{Name: at, Columns: slices.Concat(
		[]output.Column[contract.GPUHistoryStep]{{Head: "START", Cell: at}}, historyColumns)}
}

func intText(x *int, unit string) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%d%s", *x, unit)
}

func memoryText(mebibytes *int) string {
	if mebibytes == nil {
		return "-"
	}
	return fmt.Sprintf("%.1fG", float64(*mebibytes)/1024)
}

func powerText(watts *float64) string {
	if watts == nil {
		return "-"
	}
	return fmt.Sprintf("%.0fW", *watts)
}

// newHistoryCommand is the command gpus history.
func newHistoryCommand(a *app.App) *cobra.Command {
	var zone string
	since, step := flags.Span(longestHistory), flags.Span(0)
	c := &cobra.Command{
		Use: "history GPU", Short: "See what a GPU did in the last day", Args: flags.ExactArgs("GPU"),
		Long: "See what a GPU did in the last day: mean use and the most of it, memory in use, the highest temperature, " +
			"power.\n\n" +
			"It is what the daemon of its node told (docs/node.md); where nothing came there is a dash. Operators see the " +
			"whole day. Others see what a GPU did since the allocation began that holds it, unless the installation shows " +
			"them all (tenants_see_nodes). The server keeps it in memory: it begins anew with the server.",
		Example: "  forewarm gpus history GPU-SIM-5f1c3c2e-8d0b-4c0e-9b7a-2f6d1e4a7b90 --since 2h",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkHistory(cmd, since.Duration(), step.Duration()); err != nil {
				return err
			}
			in, err := a.Zone(cmd, zone)
			if err != nil {
				return err
			}
			if zone == "" {
				in = nil
			}
			length := step.Duration()
			if length == 0 {
				length = chooseStep(since.Duration())
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.GPUHistory(cmd.Context(), args[0], a.Clock.Now().Add(-since.Duration()), length)
			if err != nil {
				return err
			}
			return showHistory(a, cmd, historyView(in), got)
		},
	}
	f := c.Flags()
	f.Var(&since, "since", "how long ago it begins, at most 24h")
	f.Var(&step, "step", "length of a step, a multiple of 5m (default 5m, 15m, 30m or 1h, so that there are at most 24)")
	f.StringVar(&zone, "tz", "", "time zone of the times shown (default UTC)")
	return c
}

// checkHistory refuses what the server does not keep. A step of 0 is to be chosen.
func checkHistory(cmd *cobra.Command, since, step time.Duration) error {
	if since > longestHistory {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "--since is at most 24h: no more is kept")
	}
	if step%leastStep != 0 || step > longestHistory {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "--step is a multiple of 5m, and at most 24h")
	}
	return nil
}

// chooseStep is the shortest step with which a time has no more than mostSteps.
func chooseStep(since time.Duration) time.Duration {
	at := slices.IndexFunc(stepLengths, func(step time.Duration) bool { return since <= mostSteps*step })
	return stepLengths[at]
}

// showHistory shows a history: to a person at a terminal with a line for each figure above.
func showHistory(a *app.App, cmd *cobra.Command, v output.View[contract.GPUHistoryStep],
	got contract.GPUHistory) error {
	if a.Flags.Output == output.JSON || a.Flags.Output == output.YAML {
		return output.One(a, cmd, output.View[contract.GPUHistory]{}, got)
	}
	table := a.Flags.Output == output.Table || a.Flags.Output == output.Wide
	if table && len(got.Items) > 0 && a.Terminal(cmd.OutOrStdout()) {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), drawHistory(got.Items)); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	if err := output.List(a, cmd, v, got.Items); err != nil {
		return err
	}
	if table {
		a.SayNote(cmd, missingNote(got))
	}
	if table && got.Simulated {
		a.SayNote(cmd, "It is simulated: no figure is real.")
	}
	return nil
}

// missingNote says what is missing, and why.
func missingNote(got contract.GPUHistory) string {
	switch {
	case got.Elsewhere:
		return "The daemon of its node reports to another server now, which has what is missing here."
	case !got.Complete:
		return "It is not whole: in some of the time since " + format.Time(got.Since) +
			" this server was told nothing, or it was not there."
	}
	return ""
}
