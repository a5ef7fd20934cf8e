// Package wait is the command wait.
package wait

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/allocations"
	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/await"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/jobs"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/reservations"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command wait.
func NewCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "wait ALLOCATION|RESERVATION|JOB", Short: "Wait until the GPUs are there, or a job is over",
		Args:        flags.ExactArgs("ALLOCATION, RESERVATION or JOB"),
		Annotations: map[string]string{app.Waits: "yes", "noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.BookingID(a, cmd, args[0])
			if err != nil {
				return err
			}
			switch names.NounOf(id) {
			case "reservations":
				return waitAndShow(a, cmd, reservations.View, contract.Reservation{ID: id}, api, await.Reservation)
			case "jobs":
				return waitAndShow(a, cmd, jobs.ViewAt(a.Clock.Now()), contract.Job{ID: id}, api, await.Job)
			default:
				return waitAndShow(a, cmd, allocations.View, contract.Allocation{ID: id}, api, await.Allocation)
			}
		},
	}
}

// waitAndShow waits for something and shows it.
func waitAndShow[T any](a *app.App, cmd *cobra.Command, v output.View[T], x T, api *client.Client,
	wait func(*app.App, *cobra.Command, *client.Client, T) (T, error)) error {
	got, err := wait(a, cmd, api, x)
	if err != nil {
		return err
	}
	return output.One(a, cmd, v, got)
}
