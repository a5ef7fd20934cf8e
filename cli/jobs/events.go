package jobs

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/events"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
)

// newEventsCommand is the command jobs events.
func newEventsCommand(a *app.App) *cobra.Command {
	var q events.Query
	c := &cobra.Command{
		Use: "events JOB", Short: "See what happened to a job; with -f, follow what happens", Args: flags.ExactArgs("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.Check(a, cmd); err != nil {
				return err
			}
			api, id, err := names.JobID(a, cmd, args[0])
			if err != nil {
				return err
			}
			if _, err := api.Job(cmd.Context(), id); err != nil { // of a job that there is not nothing happened, either
				return err
			}
			q.Subject = id
			return q.Show(a, cmd)
		},
	}
	q.AddFlags(c)
	return c
}
