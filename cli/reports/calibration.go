// Package reports has the reports: zero-wait rate and idle waste, costs, and
// calibration of forecasts.
package reports

import (
	"fmt"
	"math"
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

var calibrationView = output.View[contract.SourceCalibration]{
	Name: func(x contract.SourceCalibration) string { return x.Source },
	Columns: []output.Column[contract.SourceCalibration]{
		{Head: "SOURCE", Cell: func(x contract.SourceCalibration) string { return x.Source }},
		{Head: "N", Right: true, Cell: func(x contract.SourceCalibration) string { return strconv.Itoa(x.N) }},
		{Head: "PINBALL", Right: true,
			Cell: func(x contract.SourceCalibration) string { return format.Fixed(&x.MeanPinball) }},
		{Head: "BRIER", Right: true, Cell: func(x contract.SourceCalibration) string { return format.Fixed(&x.Brier) }},
		{Head: "LOG LOSS", Right: true,
			Cell: func(x contract.SourceCalibration) string { return format.Fixed(&x.LogLoss) }},
		{Head: "INTERVAL", Cell: func(x contract.SourceCalibration) string {
			return fmt.Sprintf("%.2f said, %.2f seen", x.Interval.Said, x.Interval.Seen)
		}},
		{Head: "BASELINE BRIER", Right: true, Cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return &b.Brier })
		}},
		{Head: "SKILL", Right: true, Cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return b.Skill })
		}},
		{Head: "INFLUENCE", Right: true,
			Cell: func(x contract.SourceCalibration) string { return format.Fixed(x.Influence) }},
		{Head: "0.0 SAID 1.0", Cell: func(x contract.SourceCalibration) string { return reliabilityStrip(x.Bins) }},
		{Head: "COMPARED", Right: true, Wide: true,
			Cell: func(x contract.SourceCalibration) string { return comparedText(x) }},
		{Head: "UPLIFT", Right: true, Wide: true, Cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return &b.Uplift })
		}},
	},
}

func baselineText(x contract.SourceCalibration, number func(contract.AgainstBaseline) *float64) string {
	if x.Baseline == nil {
		return "-"
	}
	return format.Fixed(number(*x.Baseline))
}

func comparedText(x contract.SourceCalibration) string {
	if x.Baseline == nil {
		return "-"
	}
	return strconv.Itoa(x.Baseline.N)
}

// reliabilityStrip is a reliability diagram in ten letters, one for each tenth of stated
// probability: "=" where what was said came true within chance (two standard
// errors), "+" where it came true more often, "-" where less, "." without
// forecasts.
func reliabilityStrip(bins []contract.ReliabilityBin) string {
	var b strings.Builder
	for _, bin := range bins {
		b.WriteByte(reliabilityMark(bin))
	}
	return "[" + b.String() + "]"
}

func reliabilityMark(b contract.ReliabilityBin) byte {
	if b.N == 0 || b.Said == nil || b.Seen == nil {
		return '.'
	}
	stray := 2 * math.Sqrt(*b.Said*(1-*b.Said)/float64(b.N))
	switch {
	case *b.Seen > *b.Said+stray:
		return '+'
	case *b.Seen < *b.Said-stray:
		return '-'
	default:
		return '='
	}
}

var binView = output.View[contract.ReliabilityBin]{
	Columns: []output.Column[contract.ReliabilityBin]{
		{Head: "CHANCE",
			Cell: func(x contract.ReliabilityBin) string { return fmt.Sprintf("%.1f to %.1f", x.From, x.To) }},
		{Head: "N", Right: true, Cell: func(x contract.ReliabilityBin) string { return strconv.Itoa(x.N) }},
		{Head: "SAID", Right: true, Cell: func(x contract.ReliabilityBin) string { return format.Fixed(x.Said) }},
		{Head: "SEEN", Right: true, Cell: func(x contract.ReliabilityBin) string { return format.Fixed(x.Seen) }},
		{Head: "", Cell: func(x contract.ReliabilityBin) string { return string(reliabilityMark(x)) }},
	},
}

// day is what the report's period is counted in.
const day = 24 * time.Hour

func newCalibrationCommand(a *app.App) *cobra.Command {
	var source string
	last := flags.Span(30 * day)
	c := &cobra.Command{
		Use: "calibration", Short: "See how well forecasts match what happened, by source", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last.Duration() < day || last.Duration()%day != 0 {
				return exit.UsageErrorf(cmd.CommandPath()+" --last 7d", "--last must be whole days")
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Calibration(cmd.Context(), source, int(last.Duration()/day))
			if err != nil {
				return err
			}
			return showCalibration(a, cmd, got, source != "")
		},
	}
	c.Flags().StringVar(&source, "source", "", "only statistics, llm, extractor, rule or person, with its bins")
	c.Flags().Var(&last, "last", "windows that started within this period up to now, such as 7d")
	return c
}

// showCalibration shows the report, in tables with a diagram for each source, and
// with all bins of one.
func showCalibration(a *app.App, cmd *cobra.Command, got contract.CalibrationReport, bins bool) error {
	if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return output.One(a, cmd,
			output.View[contract.CalibrationReport]{Name: func(x contract.CalibrationReport) string {
				return format.Time(x.From) +
					"/" + format.Time(x.To)
			}}, got)
	}
	var err error
	if len(got.Sources) > 0 || len(got.Jobs) == 0 && got.Runtimes == nil {
		err = output.List(a, cmd, calibrationView, got.Sources)
	}
	if r := got.Runtimes; err == nil && r != nil {
		a.Say(cmd, "Of %s whose runtime was predicted, %.2f ended within what was said (%.2f said), and %.2f by the likely "+
			"time (0.50 said)", format.Count(r.Interval.N, "job"), r.Interval.Seen, r.Interval.Said, r.ByLikely)
	}
	if err == nil && len(got.Jobs) > 0 {
		if len(got.Sources) > 0 {
			_, _ = fmt.Fprintln(cmd.OutOrStdout())
		}
		err = output.List(a, cmd, predictionView, predictionsOf(got.Jobs))
	}
	if err != nil || len(got.Sources) == 0 {
		return err
	}
	a.Say(cmd, "= as said, within chance; + came true more often; - less often; . no forecasts")
	if !bins {
		return nil
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout())
	return output.List(a, cmd, binView, got.Sources[0].Bins)
}
