package daemon

import (
	"context"
	"errors"
	"log/slog"
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
func serveHTTP(l net.Listener, h http.Handler, log *slog.Logger) actor {
	return runServer(httpx.NewServer(l.Addr().String(), h), l, log)
}

// metricsLimits bound what is open where metrics are shown, to anybody who can reach it.
var metricsLimits = httpx.ConnLimits{All: 64, PerAddress: 16}

// serveMetrics is serveHTTP for short answers on a listener that has no bounds yet.
func serveMetrics(l net.Listener, h http.Handler, log *slog.Logger) actor {
	return runServer(httpx.NewShortServer(l.Addr().String(), h),
		httpx.LimitConnections(l, metricsLimits, httpx.Proxies{}), log)
}

// runServer serves until the context ends. What net/http has to say goes to the log.
func runServer(srv *http.Server, l net.Listener, log *slog.Logger) actor {
	srv.ErrorLog = httpx.NewErrorLog(log)
	return func(ctx context.Context) error {
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
