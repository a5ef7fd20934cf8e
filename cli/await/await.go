// Package await waits for GPUs: for room, for an allocation to be active, for a
// reservation to be warm.
package await

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/httpx"
)

// lookEvery is the time between two looks at what is waited for.
const lookEvery = time.Second

// waitUntil looks again and again until what is watched is done, fails, or time is
// up. A server that does not answer is asked again too. Ctrl-C lets go of it and
// cancels nothing.
func waitUntil(a *app.App, cmd *cobra.Command, failed []string, look func(context.Context) (watched, error)) error {
	p := newProgress(a, cmd)
	defer p.end()
	deadline := a.Clock.Now().Add(a.Flags.Timeout.Duration())
	var x watched
	for failures := 0; ; {
		seen, err := look(cmd.Context())
		switch {
		case err == nil:
			x, failures = seen, 0
			p.show(x, a.Clock.Now())
		case !isTransient(err) || cmd.Context().Err() != nil:
			return letGo(a, cmd, x, err)
		default:
			x.id = seen.id
			sayBroken(a, cmd, p, failures, err)
			failures++
		}
		switch {
		case x.done && failures == 0:
			return nil
		case failures == 0 && slices.Contains(failed, x.state):
			return &exit.Error{Code: exit.WaitFailed, Message: x.id + " is " + x.text,
				Next: []string{"forewarm events --last 20", "forewarm " + names.NounOf(x.id) + " show " + x.id}}
		case !a.Clock.Now().Before(deadline):
			return gaveUp(a, x, err)
		}
		pause := min(httpx.Backoff(failures, lookEvery, longestPause, nil), max(lookEvery, deadline.Sub(a.Clock.Now())))
		if err := a.Pause(cmd.Context(), pause); err != nil {
			return letGo(a, cmd, x, err)
		}
	}
}

// longestPause is the longest time between two attempts to reach a server.
const longestPause = 15 * time.Second

// sayBroken says once that a server does not answer and is asked again.
func sayBroken(a *app.App, cmd *cobra.Command, p *progress, failures int, err error) {
	if failures > 0 {
		return
	}
	p.end()
	p.last = ""
	a.Say(cmd, "%s; trying again for up to %s.", troubleText(err), format.Duration(a.Flags.Timeout.Duration()))
}

// troubleText is what a person is told of a failure that may pass.
func troubleText(err error) string {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		return cmp.Or(answer.Problem.Detail, answer.Problem.Title)
	}
	return problem.UnreachableText(err)
}

// gaveUp is the end of waiting for something that goes on; err is why it was not
// seen last, if it was not.
func gaveUp(a *app.App, x watched, err error) error {
	e := &exit.Error{Code: exit.Timeout, Err: err, Next: []string{"forewarm wait " + x.id},
		Message: fmt.Sprintf("%s is still %s after %s; it continues", x.id, x.text,
			format.Duration(a.Flags.Timeout.Duration()))}
	if err != nil {
		e.Message =
			fmt.Sprintf("%s, and %s has passed; %s continues", troubleText(err),
				format.Duration(a.Flags.Timeout.Duration()), x.id)
	}
	return e
}

// letGo tells how to go on waiting after an interruption.
func letGo(a *app.App, cmd *cobra.Command, x watched, err error) error {
	if cmd.Context().Err() == nil || x.id == "" {
		return err
	}
	return &exit.Error{Code: exit.Interrupt, Message: "no longer waiting; " + x.id + " continues",
		Next: []string{"forewarm wait " + x.id}, Err: err}
}

// isTransient reports whether a failed look may succeed in a moment: the server said
// so, or did not answer.
func isTransient(err error) bool {
	var (
		problem *client.Error
		asked   *url.Error
		name    *net.DNSError
		cert    *tls.CertificateVerificationError
	)
	if errors.As(err, &problem) {
		return problem.Problem.Retryable
	}
	unknown := errors.As(err, &name) && name.IsNotFound
	return errors.As(err, &asked) && !unknown && !errors.As(err, &cert)
}
