// Package await waits for GPUs: for room, for an allocation to be active, for a
// reservation to be warm.
package await

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
)

// waitUntil looks again and again until what is watched is done, fails, or time is
// up. A server that does not answer is asked again too. Ctrl-C lets go of it and
// cancels nothing.
func waitUntil(a *app.App, cmd *cobra.Command, failed []string, look func(context.Context) (watched, error)) error {
	p := newProgress(a, cmd)
	defer p.end()
	var x watched
	var broken error // why the last look failed; nil: it did not
	poll := newPoll(a, a.Clock.Now().Add(a.Flags.Timeout.Duration()))
	poll.OnBroken = func(err error) { sayBroken(a, cmd, p, err) }
	err := poll.Until(cmd.Context(), func(ctx context.Context) (bool, error) {
		seen, err := look(ctx)
		if broken = err; err != nil {
			x.id, x.label = seen.id, seen.label
			return false, err
		}
		x = seen
		p.show(x, a.Clock.Now())
		if slices.Contains(failed, x.state) {
			return false, &exit.Error{Code: exit.WaitFailed, Message: x.sentence("is"), Next: x.whatNext()}
		}
		return x.done, nil
	})
	if errors.Is(err, client.ErrTimeUp) {
		return gaveUp(a, x, broken)
	}
	return letGo(a, cmd, x, err)
}

// newPoll waits as this run does, until a deadline.
func newPoll(a *app.App, deadline time.Time) client.Poll {
	return client.Poll{Deadline: deadline, Now: a.Clock.Now, Pause: a.Pause}
}

// sayBroken says that a server does not answer and is asked again.
func sayBroken(a *app.App, cmd *cobra.Command, p *progress, err error) {
	p.end()
	p.last = ""
	a.Say(cmd, "%s; trying again for up to %s.", TroubleText(err), format.Duration(a.Flags.Timeout.Duration()))
}

// TroubleText is what a person is told of a failure that may pass.
func TroubleText(err error) string {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		return cmp.Or(answer.Problem.Detail, answer.Problem.Title)
	}
	return problem.UnreachableText(err)
}

// gaveUp is the end of waiting for something that goes on; err is why it was not
// seen last, if it was not.
func gaveUp(a *app.App, x watched, err error) error {
	e := &exit.Error{Code: exit.Timeout, Err: err, Next: []string{"forewarm wait " + x.id},
		Message: fmt.Sprintf("%s after %s; it continues", x.sentence("is still"),
			format.Duration(a.Flags.Timeout.Duration()))}
	if err != nil {
		e.Message =
			fmt.Sprintf("%s, and %s has passed; %s continues", TroubleText(err),
				format.Duration(a.Flags.Timeout.Duration()), x.name())
	}
	return e
}

// letGo tells how to go on waiting after an interruption.
func letGo(a *app.App, cmd *cobra.Command, x watched, err error) error {
	if err == nil || cmd.Context().Err() == nil || x.id == "" {
		return err
	}
	return &exit.Error{Code: exit.Interrupt, Message: "no longer waiting; " + x.name() + " continues",
		Next: []string{"forewarm wait " + x.id}, Err: err}
}
