package forecasts

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newListCommand is the command forecasts list.
func newListCommand(a *app.App) *cobra.Command {
	var f client.ForecastFilter
	var last int
	var from, to, zone string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List forecasts and their outcomes, latest first",
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
	c.Flags().StringVar(&f.Source, "source", "", "only statistics, llm, extractor, rule or person")
	c.Flags().StringVar(&f.Pool, "pool", "", "only those in this pool")
	c.Flags().StringVar(&f.State, "state", "", "only open or closed")
	c.Flags().StringVar(&from, "from", "", "only windows that start at this time or later, such as 'mon 08:00'")
	c.Flags().StringVar(&to, "to", "", "only windows that start before this time")
	c.Flags().StringVar(&zone, "tz", "", "time zone of --from and --to (default the machine's)")
	c.Flags().IntVar(&last, "last", 50, "show only this many of the newest; 0 shows all")
	return c
}
