package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/forewarm/forewarm/cli/exit"
)

// SignalContext returns a context that Ctrl-C and SIGTERM end, with an
// *exit.Interrupted as its cause. The second signal ends the program as if nobody
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
			cancel(&exit.Interrupted{Signal: number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}
