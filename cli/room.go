package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// allocateGPUs allocates GPUs. With --wait it asks again while there is no room, until
// the time is up, and leaves what remains of it to the wait for the GPUs.
func (a *app) allocateGPUs(cmd *cobra.Command, api *client.Client, in contract.AllocationCreate) (contract.Allocation, error) {
	deadline := a.clock.Now().Add(a.flags.timeout.std())
	for {
		got, err := api.Allocate(a.withIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.flags.dryRun})
		if err == nil || !a.flags.wait || a.flags.dryRun || !noRoom(err) {
			a.flags.timeout = span(max(lookEvery, deadline.Sub(a.clock.Now())))
			return got, err
		}
		if err := a.awaitRoom(cmd, deadline, err, func(ctx context.Context) error {
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
func (a *app) awaitRoom(cmd *cobra.Command, deadline time.Time, refused error, ask func(context.Context) error) error {
	a.say(cmd, "No room now; asking again until %s. That is no place in a queue, as forewarm reserve --on-full "+
		"queue gives one.", formatTime(deadline))
	p := a.newProgress(cmd)
	defer p.end()
	for err := refused; err != nil; err = ask(cmd.Context()) {
		if !noRoom(err) && !isTransient(err) {
			return err
		}
		if noRoom(err) {
			refused = err
		}
		p.show(watched{id: "no room", text: blockerText(refused)}, a.clock.Now())
		if !a.clock.Now().Before(deadline) {
			return a.stillFull(cmd, refused)
		}
		if err := a.pause(cmd.Context(), min(roomEvery, max(lookEvery, deadline.Sub(a.clock.Now())))); err != nil {
			return &Error{Exit: ExitInterrupt, Message: "no longer waiting; nothing was booked",
				Next: []string{typedLine(cmd)}, Err: err}
		}
	}
	return nil
}

// blockerText is what stands in the way, as the server says it.
func blockerText(err error) string {
	var problem *client.Error
	if errors.As(err, &problem) && len(problem.Problem.Blockers) > 0 {
		return inWords(problem.Problem.Blockers[0].Message)
	}
	return troubleText(err)
}

// stillFull is the last refusal, which nothing goes on after.
func (a *app) stillFull(cmd *cobra.Command, refused error) error {
	e := explainError(cmd, refused)
	e.Message = fmt.Sprintf("after %s there is still no room: %s", formatDuration(a.flags.timeout.std()), blockerText(refused))
	return e
}
