package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

// lookEvery is the time between two looks at what is waited for.
const lookEvery = time.Second

// progress shows the phases that something goes through: one line that is
// rewritten at a terminal, one line for each phase elsewhere.
type progress struct {
	w     io.Writer
	live  bool
	quiet bool
	since time.Time
	last  string
}

func (a *app) newProgress(cmd *cobra.Command) *progress {
	return &progress{w: cmd.ErrOrStderr(), live: a.terminal(cmd.ErrOrStderr()), quiet: a.flags.quiet,
		since: a.clock.Now()}
}

func (p *progress) show(x watched, now time.Time) {
	id, phase := x.id, x.text
	switch {
	case p.quiet:
	case p.live:
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K◐ %s  %s  %s%s", plainText(id), plainText(phase), formatDuration(now.Sub(p.since)), x.remainingText())
	case phase != p.last:
		_, _ = fmt.Fprintf(p.w, "%s  %s%s\n", plainText(id), plainText(phase), x.remainingText())
	}
	p.last = phase
}

func (p *progress) end() {
	if p.live && !p.quiet && p.last != "" {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// watched is something whose state is waited for.
type watched struct {
	id    string
	state string
	text  string // the phase, as people are told
	done  bool
	wait  *contract.WaitEstimate // how much longer, if anything is known of that
}

// remainingText says how much longer it takes.
func (x watched) remainingText() string {
	if x.wait == nil || x.done {
		return ""
	}
	return ", ready in about " + readyIn(x.wait)
}

// waitUntil looks again and again until what is watched is done, fails, or time is
// up. A server that does not answer is asked again too. Ctrl-C lets go of it and
// cancels nothing.
func (a *app) waitUntil(cmd *cobra.Command, failed []string, look func(context.Context) (watched, error)) error {
	p := a.newProgress(cmd)
	defer p.end()
	deadline := a.clock.Now().Add(a.flags.timeout.std())
	var x watched
	for failures := 0; ; {
		seen, err := look(cmd.Context())
		switch {
		case err == nil:
			x, failures = seen, 0
			p.show(x, a.clock.Now())
		case !isTransient(err) || cmd.Context().Err() != nil:
			return a.letGo(cmd, x, err)
		default:
			x.id = seen.id
			a.sayBroken(cmd, p, failures, err)
			failures++
		}
		switch {
		case x.done && failures == 0:
			return nil
		case failures == 0 && slices.Contains(failed, x.state):
			return &Error{Exit: ExitWaitFailed, Message: x.id + " is " + x.text,
				Next: []string{"forewarm events --last 20", "forewarm " + nounOf(x.id) + " show " + x.id}}
		case !a.clock.Now().Before(deadline):
			return a.gaveUp(x, err)
		}
		pause := min(httpx.Backoff(failures, lookEvery, longestPause, nil), max(lookEvery, deadline.Sub(a.clock.Now())))
		if err := a.pause(cmd.Context(), pause); err != nil {
			return a.letGo(cmd, x, err)
		}
	}
}

// longestPause is the longest time between two attempts to reach a server.
const longestPause = 15 * time.Second

// sayBroken says once that a server does not answer and is asked again.
func (a *app) sayBroken(cmd *cobra.Command, p *progress, failures int, err error) {
	if failures > 0 {
		return
	}
	p.end()
	p.last = ""
	a.say(cmd, "%s; trying again for up to %s.", troubleText(err), formatDuration(a.flags.timeout.std()))
}

// troubleText is what a person is told of a failure that may pass.
func troubleText(err error) string {
	if problem, ok := errors.AsType[*client.Error](err); ok {
		return firstNonEmpty(problem.Problem.Detail, problem.Problem.Title)
	}
	return unreachableText(err)
}

// gaveUp is the end of waiting for something that goes on; err is why it was not
// seen last, if it was not.
func (a *app) gaveUp(x watched, err error) error {
	e := &Error{Exit: ExitTimeout, Err: err, Next: []string{"forewarm wait " + x.id},
		Message: fmt.Sprintf("%s is still %s after %s; it goes on", x.id, x.text, formatDuration(a.flags.timeout.std()))}
	if err != nil {
		e.Message = fmt.Sprintf("%s, and %s is over; %s goes on", troubleText(err), formatDuration(a.flags.timeout.std()), x.id)
	}
	return e
}

// letGo tells how to go on waiting after an interruption.
func (a *app) letGo(cmd *cobra.Command, x watched, err error) error {
	if cmd.Context().Err() == nil || x.id == "" {
		return err
	}
	return &Error{Exit: ExitInterrupt, Message: "no longer waiting; " + x.id + " goes on",
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

func (a *app) waitAllocation(cmd *cobra.Command, api *client.Client,
	x contract.Allocation) (contract.Allocation, error) {
	err := a.waitUntil(cmd, []string{"failed", "expired", "cancelled", "released", "releasing"},
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

func (a *app) waitReservation(cmd *cobra.Command, api *client.Client,
	x contract.Reservation) (contract.Reservation, error) {
	err := a.waitUntil(cmd, []string{"cancelled", "expired", "failed"}, func(ctx context.Context) (watched, error) {
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
	return state + " (" + plainText(reason) + ")"
}

func nounOf(id string) string {
	if strings.HasPrefix(id, "rsv_") {
		return "reservations"
	}
	return "allocations"
}

func (a *app) newWaitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "wait ALLOCATION|RESERVATION", Short: "Wait until the GPUs are there", Args: exactArgs("ALLOCATION"),
		Annotations: map[string]string{waits: "yes", "noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.bookingID(cmd, args[0])
			switch {
			case err != nil:
				return err
			case nounOf(id) == "reservations":
				return waitAndShow(a, cmd, reservationView, contract.Reservation{ID: id}, api, a.waitReservation)
			default:
				return waitAndShow(a, cmd, allocationView, contract.Allocation{ID: id}, api, a.waitAllocation)
			}
		},
	}
}

// waitAndShow waits for something and shows it.
func waitAndShow[T any](a *app, cmd *cobra.Command, v view[T], x T, api *client.Client,
	wait func(*cobra.Command, *client.Client, T) (T, error)) error {
	got, err := wait(cmd, api, x)
	if err != nil {
		return err
	}
	return showOne(a, cmd, v, got)
}
