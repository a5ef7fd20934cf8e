package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/forewarm/forewarm/cli/exit"
)

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal syscall.Signal }

// Error names the signal, as people do.
func (i *Interrupted) Error() string {
	if i.Signal == syscall.SIGTERM {
		return "ended by SIGTERM"
	}
	return "interrupted by Ctrl-C"
}

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
		return exit.Terminated
	}
	return exit.Interrupt
}
