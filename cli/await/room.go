package await

import (
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

// shortestWait is what remains at least of the time to wait, for a last look.
const shortestWait = time.Second

// AllocateGPUs allocates GPUs. With --wait it asks again while there is no room, until
// the time is up, and leaves what remains of it to the wait for the GPUs.
func AllocateGPUs(a *app.App, cmd *cobra.Command, api *client.Client,
	in contract.AllocationCreate) (contract.Allocation, error) {
	ctx := a.WithIdempotencyKey(cmd.Context())
	if !a.Flags.Wait || a.Flags.DryRun {
		return api.Allocate(ctx, in, client.Options{DryRun: a.Flags.DryRun})
	}
	limit := a.Flags.Timeout.Duration()
	deadline := a.Clock.Now().Add(limit)
	poll := newPoll(a, deadline)
	p := newProgress(a, cmd)
	defer p.end()
	var refused error // the last time; nil: it never was
	poll.OnRefused = func(err error) {
		if refused == nil {
			a.Say(cmd, "No room now; asking again until %s. This is not a place in a queue: forewarm reserve --on-full "+
				"queue gives one.", format.Time(deadline))
		}
		refused = err
		p.show(watched{id: "no room", text: blockerText(refused)}, a.Clock.Now())
	}
	got, err := poll.Allocate(ctx, in, api.Allocate)
	a.Flags.Timeout = flags.Span(max(shortestWait, deadline.Sub(a.Clock.Now())))
	switch {
	case errors.Is(err, client.ErrTimeUp):
		return got, stillFull(cmd, refused, limit)
	case err != nil && refused != nil && cmd.Context().Err() != nil:
		return got, notBooked(cmd, err)
	}
	return got, err
}

// notBooked says what an interruption left behind; a request on its way says it itself.
func notBooked(cmd *cobra.Command, err error) error {
	if _, told := errors.AsType[*exit.Error](err); told {
		return err
	}
	return &exit.Error{Code: exit.Interrupt, Message: "no longer waiting; nothing was booked",
		Next: []string{flags.TypedLine(cmd)}, Err: err}
}

// blockerText is what stands in the way, as the server says it.
func blockerText(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) && len(refused.Problem.Blockers) > 0 {
		return problem.InWords(refused.Problem.Blockers[0].Message)
	}
	return TroubleText(err)
}

// stillFull is the last refusal, which nothing goes on after.
func stillFull(cmd *cobra.Command, refused error, after time.Duration) error {
	e := problem.Explain(cmd, refused)
	e.Message = fmt.Sprintf("after %s there is still no room: %s", format.Duration(after), blockerText(refused))
	return e
}
