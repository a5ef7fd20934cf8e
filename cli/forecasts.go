package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var forecastView = view[contract.Forecast]{
	name: func(x contract.Forecast) string { return x.ID },
	columns: []column[contract.Forecast]{
		{head: "ID", cell: func(x contract.Forecast) string { return x.ID }},
		{head: "SOURCE", cell: func(x contract.Forecast) string { return x.Source }},
		{head: "START", cell: func(x contract.Forecast) string { return formatTime(x.Start) }},
		{head: "FOR", right: true, cell: func(x contract.Forecast) string { return formatDuration(x.End.Sub(x.Start)) }},
		{head: "GPUS", right: true, cell: expectedGPUs},
		{head: "CHANCE", right: true, cell: func(x contract.Forecast) string { return formatFixed(&x.Probability) }},
		{head: "BASELINE", right: true, cell: func(x contract.Forecast) string { return formatFixed(x.BaselineProbability) }},
		{head: "REASON", cell: func(x contract.Forecast) string { return x.ReasonCode }},
		{head: "STATE", cell: func(x contract.Forecast) string { return x.State }},
		{head: "CAME", right: true, cell: outcomeText},
		{head: "BRIER", right: true, cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.Brier })
		}},
		{head: "PINBALL", right: true, cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.Pinball })
		}},
		{head: "LOG LOSS", right: true, wide: true, cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.LogLoss })
		}},
		{head: "INFLUENCE", right: true, wide: true,
			cell: func(x contract.Forecast) string { return formatFixed(x.Influence) }},
		{head: "POOL", wide: true, cell: func(x contract.Forecast) string { return x.PoolID }},
		{head: "MADE BY", wide: true, cell: func(x contract.Forecast) string { return x.MadeBy }},
		{head: "ISSUED", wide: true, cell: func(x contract.Forecast) string { return formatTime(x.IssuedAt) }},
		{head: "RECORDED", wide: true, cell: func(x contract.Forecast) string { return formatTime(x.RecordedAt) }},
		{head: "MODEL", wide: true, cell: func(x contract.Forecast) string { return orDash(x.Model) }},
		{head: "PROMPT", wide: true, cell: func(x contract.Forecast) string { return orDash(x.PromptHash) }},
		{head: "EVIDENCE", wide: true, cell: func(x contract.Forecast) string { return orDash(x.EvidenceHash) }},
	},
}

// expectedGPUs are the three quantiles: 1 4 8 reads as between 1 and 8, about 4.
func expectedGPUs(x contract.Forecast) string {
	return fmt.Sprintf("%d %d %d", x.GPUs.P10, x.GPUs.P50, x.GPUs.P90)
}

func outcomeText(x contract.Forecast) string {
	if x.Outcome == nil {
		return "-"
	}
	return strconv.Itoa(x.Outcome.GPUs)
}

func scoreText(x contract.Forecast, score func(contract.ForecastOutcome) float64) string {
	if x.Outcome == nil {
		return "-"
	}
	s := score(*x.Outcome)
	return formatFixed(&s)
}

// formatFixed renders a number that may be missing.
func formatFixed(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'f', 3, 64)
}

func (a *app) newForecastsCommand() *cobra.Command {
	var f client.ForecastFilter
	var last int
	var from, to, zone string
	listed := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List what was expected and what came, the latest first",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.From, f.To, err = a.parseRange(cmd, from, to, zone); err != nil {
				return err
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			var found []contract.Forecast
			for x, err := range api.Forecasts(cmd.Context(), f) {
				if err != nil {
					return err
				}
				if found = append(found, x); last > 0 && len(found) >= last {
					break
				}
			}
			return showList(a, cmd, forecastView, found)
		},
	}
	listed.Flags().StringVar(&f.Source, "source", "", "only statistics, llm, extractor, rule or person")
	listed.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	listed.Flags().StringVar(&f.State, "state", "", "only open or closed")
	listed.Flags().StringVar(&from, "from", "", "only windows that start then or later, such as 'mon 08:00'")
	listed.Flags().StringVar(&to, "to", "", "only windows that start before")
	listed.Flags().StringVar(&zone, "tz", "", "time zone of --from and --to (default the machine's)")
	listed.Flags().IntVar(&last, "last", 50, "only the last so many; 0 means all")
	return newGroupCommand("forecasts", "See what was expected, and what came", listed, a.newShowForecastCommand())
}

// parseRange reads two times, either of which may be left out.
func (a *app) parseRange(cmd *cobra.Command, from, to, zone string) (begin, end time.Time, err error) {
	in, err := a.findZone(cmd, zone)
	if err == nil && from != "" {
		begin, err = parseTime(from, a.clock.Now(), in)
		err = blameFlag(cmd, "from", err)
	}
	if err == nil && to != "" {
		end, err = parseTime(to, a.clock.Now(), in)
		err = blameFlag(cmd, "to", err)
	}
	return begin, end, err
}

func (a *app) newShowForecastCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show FORECAST", Short: "Show a forecast with its outcome", Args: exactArgs("FORECAST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Forecast(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showOne(a, cmd, forecastView, got)
		},
	}
}
