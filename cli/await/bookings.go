package await

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Allocation waits until an allocation is active.
func Allocation(a *app.App, cmd *cobra.Command, api *client.Client,
	x contract.Allocation) (contract.Allocation, error) {
	err := waitUntil(a, cmd, []string{"failed", "expired", "cancelled", "released", "releasing"},
		func(ctx context.Context) (watched, error) {
			again, err := api.Allocation(ctx, x.ID)
			if err != nil {
				return watched{id: x.ID}, err
			}
			x = again
			return watched{id: x.ID, state: x.State, text: phaseText(x.State, x.Reason), done: x.State == "active",
				wait: x.Wait}, nil
		})
	return x, err
}

// Reservation waits until a reservation is ready.
func Reservation(a *app.App, cmd *cobra.Command, api *client.Client,
	x contract.Reservation) (contract.Reservation, error) {
	err := waitUntil(a, cmd, []string{"cancelled", "expired", "failed"}, func(ctx context.Context) (watched, error) {
		again, err := api.Reservation(ctx, x.ID)
		if err != nil {
			return watched{id: x.ID}, err
		}
		x = again
		return watched{id: x.ID, state: x.State, text: phaseText(x.State, x.Reason),
			done: x.State == "ready" || x.State == "claimed", wait: x.Wait}, nil
	})
	return x, err
}

func phaseText(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + " (" + format.Plain(reason) + ")"
}

// Job waits until a job has completed.
func Job(a *app.App, cmd *cobra.Command, api *client.Client, x contract.Job) (contract.Job, error) {
	err := waitUntil(a, cmd, []string{contract.JobFailed, contract.JobCancelled},
		func(ctx context.Context) (watched, error) {
			again, err := api.Job(ctx, x.ID)
			if err != nil {
				return watched{id: x.ID}, err
			}
			x = again
			shown := x.State
			if x.Ending != nil && x.State != contract.JobPreempted { // as lists have it
				shown = "ending"
			}
			seen := watched{id: x.ID, state: x.State, text: phaseText(shown, cmp.Or(x.Detail, x.Reason)),
				done: x.State == contract.JobCompleted}
			if !x.StartedAt.IsZero() { // it may have written why
				seen.next = "forewarm jobs logs " + x.ID
			}
			return seen, nil
		})
	return x, err
}
