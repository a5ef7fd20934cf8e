package forecasts

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show FORECAST", Short: "Show a forecast with its outcome", Args: flags.ExactArgs("FORECAST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Forecast(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return output.One(a, cmd, forecastView, got)
		},
	}
}
