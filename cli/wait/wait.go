// Package wait is the command wait.
package wait

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/allocations"
	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/await"
	"github.com/forewarm/forewarm/cli/exit"
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
	first := false
	c := &cobra.Command{
		Use: "wait ALLOCATION|RESERVATION|JOB [JOB…]", Short: "Wait until the GPUs are there, or jobs are over",
		Long: `Wait until an allocation is active, a reservation is warm, or jobs are over.

An array, by its name or its id, stands for all of its jobs. Of several jobs it ends when all are over: with 0 if each
has completed, else with 10. With --any it ends with the first that is over, and with 0 if that has completed.`,
		Annotations: map[string]string{app.Waits: "yes", "noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return flags.ExactArgs("ALLOCATION, RESERVATION or JOB")(cmd, args)
			}
			var ids []string
			var api *client.Client
			for _, ref := range args {
				found, id, err := names.BookingID(a, cmd, ref)
				if err != nil {
					return err
				}
				api, ids = found, append(ids, id)
			}
			return waitFor(a, cmd, api, ids, first)
		},
	}
	c.Flags().BoolVar(&first, "any", false, "of jobs, wait for the first that is over")
	return c
}

func waitFor(a *app.App, cmd *cobra.Command, api *client.Client, ids []string, first bool) error {
	all := await.Jobs{Any: first}
	for _, id := range ids {
		if names.NounOf(id) == "jobs" {
			all.Named = append(all.Named, names.JobsOf(id))
		}
	}
	switch {
	case len(all.Named) == len(ids) && (len(ids) > 1 || first || all.Named[0].IsArray):
		counts, err := all.Until(a, cmd, api)
		if err != nil {
			return err
		}
		return output.One(a, cmd, countsView, counts)
	case len(ids) > 1 || first:
		return exit.UsageErrorf("forewarm wait "+flags.Quote(ids[0]), "only jobs can be waited for together")
	case len(all.Named) == 1:
		return waitAndShow(a, cmd, jobs.ViewAt(a.Clock.Now()), contract.Job{ID: ids[0]}, api, await.Job)
	case names.NounOf(ids[0]) == "reservations":
		return waitAndShow(a, cmd, reservations.View, contract.Reservation{ID: ids[0]}, api, await.Reservation)
	}
	return waitAndShow(a, cmd, allocations.View, contract.Allocation{ID: ids[0]}, api, await.Allocation)
}

// countsView shows how far jobs are that were waited for.
var countsView = output.View[contract.JobCounts]{
	Name: func(x contract.JobCounts) string { return strconv.Itoa(x.Completed) },
	Columns: []output.Column[contract.JobCounts]{
		{Head: "COMPLETED", Cell: func(x contract.JobCounts) string { return strconv.Itoa(x.Completed) }},
		{Head: "FAILED", Cell: func(x contract.JobCounts) string { return strconv.Itoa(x.Failed) }},
		{Head: "CANCELLED", Cell: func(x contract.JobCounts) string { return strconv.Itoa(x.Cancelled) }},
		{Head: "NOT OVER", Cell: func(x contract.JobCounts) string {
			return strconv.Itoa(x.Pending + x.Held + x.Scheduled + x.Running + x.Preempted)
		}},
	},
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
