package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal syscall.Signal }

// Error names the signal.
func (i *Interrupted) Error() string { return "interrupted by " + i.Signal.String() }

// Is makes it what the end of any other context is.
func (i *Interrupted) Is(target error) bool { return target == context.Canceled }

// SignalContext returns a context that Ctrl-C and SIGTERM end, with an
// *Interrupted as its cause. The second signal ends the program as if nobody
// listened. stop gives up listening.
func SignalContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&Interrupted{Signal: number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// interruptCode is the exit code that shells give a program which a signal
// ended.
func interruptCode(ctx context.Context) int {
	var i *Interrupted
	if errors.As(context.Cause(ctx), &i) && i.Signal == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupt
}

// readLine reads what a person types, up to the end of the line. It ends with
// the context: a read from a terminal knows nothing of signals, so it is left
// behind for the end of the program.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil // what there is, is the answer
		}
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-read:
		return l.text, l.err
	}
}

// interruptDoer knows what an interruption may have left behind: a request that
// changes something is carried out, though nobody waits for its answer.
type interruptDoer struct{ next client.Doer }

// Do sends a request.
func (d interruptDoer) Do(r *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(r)
	if err == nil || r.Context().Err() == nil || changesNothing(r) {
		return resp, err
	}
	return nil, &Error{Exit: ExitInterrupt,
		Message: "interrupted before the server answered: it may have done what was asked",
		Next:    []string{"forewarm events --last 5"}, Err: err}
}

// tellWait says why nothing seems to happen.
func (a *app) tellWait(d time.Duration, why contract.Problem) {
	if a.told != nil {
		a.told(d, why)
	}
}

// waitsFor says what a server that asks to wait lacks.
func waitsFor(why contract.Problem) string {
	switch why.Code {
	case contract.CodeUnavailable:
		return "The server's database does not answer"
	case contract.CodePoolBusy:
		return "Somebody else is changing the same thing"
	}
	return "The server is busy"
}
