package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/httpx"
)

// actor is one part of a process. It runs until the context ends.
type actor func(ctx context.Context) error

// runGroup runs the parts of a process together: when one ends, all are told to,
// and the first error is the answer.
func runGroup(ctx context.Context, actors ...actor) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(actors))
	var wait sync.WaitGroup
	for i, run := range actors {
		wait.Go(func() {
			defer cancel()
			errs[i] = run(ctx)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// drain is how long open requests may take to finish when the server ends.
const drain = 10 * time.Second

// serveHTTP answers requests on an open listener until the context ends; then it
// finishes what it has begun.
func serveHTTP(l net.Listener, h http.Handler) actor {
	return func(ctx context.Context) error {
		srv := httpx.NewServer(l.Addr().String(), h)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if err := srv.Shutdown(end); err != nil {
			return errors.Join(err, srv.Close())
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
}
