// Package forecasts shows what was expected, and what came.
package forecasts

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command forecasts.
func NewCommand(a *app.App) *cobra.Command {
	var f client.ForecastFilter
	var last int
	var from, to, zone string
	listed := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List what was expected and what came, the latest first",
		Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.From, f.To, err = parseRange(a, cmd, from, to, zone); err != nil {
				return err
			}
			api, err := a.NewClient()
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
			return output.List(a, cmd, forecastView, found)
		},
	}
	listed.Flags().StringVar(&f.Source, "source", "", "only statistics, llm, extractor, rule or person")
	listed.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	listed.Flags().StringVar(&f.State, "state", "", "only open or closed")
	listed.Flags().StringVar(&from, "from", "", "only windows that start then or later, such as 'mon 08:00'")
	listed.Flags().StringVar(&to, "to", "", "only windows that start before")
	listed.Flags().StringVar(&zone, "tz", "", "time zone of --from and --to (default the machine's)")
	listed.Flags().IntVar(&last, "last", 50, "only the last so many; 0 means all")
	return app.NewGroupCommand("forecasts", "See what was expected, and what came", listed, newShowCommand(a))
}

// parseRange reads two times, either of which may be left out.
func parseRange(a *app.App, cmd *cobra.Command, from, to, zone string) (begin, end time.Time, err error) {
	in, err := a.Zone(cmd, zone)
	if err == nil && from != "" {
		begin, err = when.Parse(from, a.Clock.Now(), in)
		err = when.BlameFlag(cmd, "from", err)
	}
	if err == nil && to != "" {
		end, err = when.Parse(to, a.Clock.Now(), in)
		err = when.BlameFlag(cmd, "to", err)
	}
	return begin, end, err
}
