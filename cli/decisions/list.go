package decisions

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newListCommand is the command decisions list.
func newListCommand(a *app.App) *cobra.Command {
	var f client.DecisionFilter
	var last int
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List decisions, newest first", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return exit.UsageErrorf("forewarm decisions list --help",
					"--last %d must be at least 0, which means all", last)
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if f.Subject, err = names.Subject(a, cmd, api, f.Subject); err != nil {
				return err
			}
			var found []contract.Decision
			for d, err := range api.Decisions(cmd.Context(), f) {
				if err != nil {
					return err
				}
				if found = append(found, d); last > 0 && len(found) >= last {
					break
				}
			}
			return output.List(a, cmd, decisionView, found)
		},
	}
	c.Flags().StringVar(&f.Subject, "subject", "", "only those about this id or booking name")
	c.Flags().StringVar(&f.Pool, "pool", "", "only those in this pool")
	c.Flags().StringVar(&f.Kind, "kind", "",
		"only admission, waitlist, refusal, promotion, displacement, prewarm, reclaim or placement")
	c.Flags().IntVar(&last, "last", 50, "show only this many of the newest; 0 shows all")
	return c
}
