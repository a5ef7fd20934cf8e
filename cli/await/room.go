package await

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// AllocateGPUs allocates GPUs. With --wait it asks again while there is no room, until
// the time is up, and leaves what remains of it to the wait for the GPUs.
func AllocateGPUs(a *app.App, cmd *cobra.Command, api *client.Client,
	in contract.AllocationCreate) (contract.Allocation, error) {
	deadline := a.Clock.Now().Add(a.Flags.Timeout.Duration())
	for {
		got, err := api.Allocate(a.WithIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.Flags.DryRun})
		if err == nil || !a.Flags.Wait || a.Flags.DryRun || !noRoom(err) {
			a.Flags.Timeout = flags.Span(max(lookEvery, deadline.Sub(a.Clock.Now())))
			return got, err
		}
		if err := awaitRoom(a, cmd, deadline, err, func(ctx context.Context) error {
			_, err := api.Allocate(ctx, in, client.Options{DryRun: true})
			return err
		}); err != nil {
			return got, err
		}
	}
}

// noRoom reports whether a request was refused because others hold what it wants.
func noRoom(err error) bool {
	var problem *client.Error
	return errors.As(err, &problem) && problem.Problem.Code == contract.CodeCapacityExhausted
}

// roomEvery is the longest time between two questions whether there is room.
const roomEvery = 5 * time.Second

// awaitRoom asks whether there is room by dry runs, which leave no refusals in
// the journal.
func awaitRoom(a *app.App, cmd *cobra.Command, deadline time.Time, refused error,
	ask func(context.Context) error) error {
	a.Say(cmd, "No room now; asking again until %s. This is not a place in a queue: forewarm reserve --on-full "+
		"queue gives one.", format.Time(deadline))
	p := newProgress(a, cmd)
	defer p.end()
	for err := refused; err != nil; err = ask(cmd.Context()) {
		if !noRoom(err) && !isTransient(err) {
			return err
		}
		if noRoom(err) {
			refused = err
		}
		p.show(watched{id: "no room", text: blockerText(refused)}, a.Clock.Now())
		if !a.Clock.Now().Before(deadline) {
			return stillFull(a, cmd, refused)
		}
		if err := a.Pause(cmd.Context(), min(roomEvery, max(lookEvery, deadline.Sub(a.Clock.Now())))); err != nil {
			return &exit.Error{Code: exit.Interrupt, Message: "no longer waiting; nothing was booked",
				Next: []string{flags.TypedLine(cmd)}, Err: err}
		}
	}
	return nil
}

// blockerText is what stands in the way, as the server says it.
func blockerText(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) && len(refused.Problem.Blockers) > 0 {
		return problem.InWords(refused.Problem.Blockers[0].Message)
	}
	return troubleText(err)
}

// stillFull is the last refusal, which nothing goes on after.
func stillFull(a *app.App, cmd *cobra.Command, refused error) error {
	e := problem.Explain(cmd, refused)
	e.Message =
		fmt.Sprintf("after %s there is still no room: %s", format.Duration(a.Flags.Timeout.Duration()),
			blockerText(refused))
	return e
}
