package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

var calibrationView = view[contract.SourceCalibration]{
	name: func(x contract.SourceCalibration) string { return x.Source },
	columns: []column[contract.SourceCalibration]{
		{head: "SOURCE", cell: func(x contract.SourceCalibration) string { return x.Source }},
		{head: "N", right: true, cell: func(x contract.SourceCalibration) string { return strconv.Itoa(x.N) }},
		{head: "PINBALL", right: true,
			cell: func(x contract.SourceCalibration) string { return formatFixed(&x.MeanPinball) }},
		{head: "BRIER", right: true, cell: func(x contract.SourceCalibration) string { return formatFixed(&x.Brier) }},
		{head: "LOG LOSS", right: true, cell: func(x contract.SourceCalibration) string { return formatFixed(&x.LogLoss) }},
		{head: "INTERVAL", cell: func(x contract.SourceCalibration) string {
			return fmt.Sprintf("%.2f said, %.2f seen", x.Interval.Said, x.Interval.Seen)
		}},
		{head: "BASELINE BRIER", right: true, cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return &b.Brier })
		}},
		{head: "SKILL", right: true, cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return b.Skill })
		}},
		{head: "INFLUENCE", right: true, cell: func(x contract.SourceCalibration) string { return formatFixed(x.Influence) }},
		{head: "0.0 SAID 1.0", cell: func(x contract.SourceCalibration) string { return reliabilityStrip(x.Bins) }},
		{head: "COMPARED", right: true, wide: true,
			cell: func(x contract.SourceCalibration) string { return comparedText(x) }},
		{head: "UPLIFT", right: true, wide: true, cell: func(x contract.SourceCalibration) string {
			return baselineText(x, func(b contract.AgainstBaseline) *float64 { return &b.Uplift })
		}},
	},
}

func baselineText(x contract.SourceCalibration, number func(contract.AgainstBaseline) *float64) string {
	if x.Baseline == nil {
		return "-"
	}
	return formatFixed(number(*x.Baseline))
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

var binView = view[contract.ReliabilityBin]{
	columns: []column[contract.ReliabilityBin]{
		{head: "CHANCE",
			cell: func(x contract.ReliabilityBin) string { return fmt.Sprintf("%.1f to %.1f", x.From, x.To) }},
		{head: "N", right: true, cell: func(x contract.ReliabilityBin) string { return strconv.Itoa(x.N) }},
		{head: "SAID", right: true, cell: func(x contract.ReliabilityBin) string { return formatFixed(x.Said) }},
		{head: "SEEN", right: true, cell: func(x contract.ReliabilityBin) string { return formatFixed(x.Seen) }},
		{head: "", cell: func(x contract.ReliabilityBin) string { return string(reliabilityMark(x)) }},
	},
}

// day is what the report's period is counted in.
const day = 24 * time.Hour

func (a *app) newCalibrationCommand() *cobra.Command {
	var source string
	last := span(30 * day)
	c := &cobra.Command{
		Use: "calibration", Short: "See how far forecasts can be believed, by what made them", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last.std() < day || last.std()%day != 0 {
				return usageErrorf(cmd.CommandPath()+" --last 7d", "--last must be whole days")
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Calibration(cmd.Context(), source, int(last.std()/day))
			if err != nil {
				return err
			}
			return a.showCalibration(cmd, got, source != "")
		},
	}
	c.Flags().StringVar(&source, "source", "", "only statistics, llm, extractor, rule or person, with its bins")
	c.Flags().Var(&last, "last", "windows that started in so many days up to now, such as 7d")
	return c
}

// showCalibration shows the report, in tables with a diagram for each source, and
// with all bins of one.
func (a *app) showCalibration(cmd *cobra.Command, got contract.CalibrationReport, bins bool) error {
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd,
			view[contract.CalibrationReport]{name: func(x contract.CalibrationReport) string {
				return formatTime(x.From) +
					"/" + formatTime(x.To)
			}}, got)
	}
	if err := showList(a, cmd, calibrationView, got.Sources); err != nil || len(got.Sources) == 0 {
		return err
	}
	a.say(cmd, "= as said, within chance; + came true more often; - less often; . no forecasts")
	if !bins {
		return nil
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout())
	return showList(a, cmd, binView, got.Sources[0].Bins)
}
