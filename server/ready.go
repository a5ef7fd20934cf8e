package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// Bounds of a look at whether this instance can do its work. Probes come from
// anybody, so what one found answers all for a while: a look costs the database a
// commit.
const (
	readyFor  = time.Second
	readyTime = 2 * time.Second
	// maxLag is how late the oldest due task may be: beyond it work is not being
	// done.
	maxLag = time.Minute
)

// Readiness tells whether a process, server or worker, can do its work. Its
// fields are set before the first look.
type Readiness struct {
	Store  ledger.Store
	Clock  clock.Clock
	Logger *slog.Logger
	Metric *obs.Metrics // nil counts nothing
	// Note adds a line to the answer of a process that is ready; nil or empty: none.
	Note func() string

	leaving atomic.Bool

	mu      sync.Mutex // held by whoever looks; the others want to know too
	at      time.Time
	trouble string // what the last look found; empty: nothing
}

// ServeHTTP answers 200 while the store takes writes and due work is done, or
// 503 and why not.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if trouble := r.Look(req.Context()); trouble != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, trouble)
		return
	}
	_, _ = fmt.Fprintln(w, "ready")
	if r.Note == nil {
		return
	}
	if note := r.Note(); note != "" {
		_, _ = fmt.Fprintln(w, note)
	}
}

// Metrics shows what g gathers, after a look: forewarm_ready is of now, also where
// nobody probes.
func (r *Readiness) Metrics(g prometheus.Gatherer) http.Handler {
	shown := promhttp.HandlerFor(g, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.Look(req.Context())
		shown.ServeHTTP(w, req)
	})
}

// Look says what is wrong, which may have been found a moment ago; empty:
// nothing.
func (r *Readiness) Look(ctx context.Context) string {
	if r.Leaving() {
		r.Metric.Ready(false)
		return "the server ends: others take over"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	if age := now.Sub(r.at); !r.at.IsZero() && age >= 0 && age < readyFor {
		return r.trouble
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime) // it is not only this one's answer
	defer cancel()
	r.trouble, r.at = r.findHindrance(ctx), now
	r.Metric.Ready(r.trouble == "")
	return r.trouble
}

// Leave says that this process ends: from now on it is not ready.
func (r *Readiness) Leave() { r.leaving.Store(true) }

// Leaving reports whether it ends.
func (r *Readiness) Leaving() bool { return r.leaving.Load() }

func (r *Readiness) findHindrance(ctx context.Context) string {
	if err := r.Store.CheckWrites(ctx); err != nil {
		r.Logger.WarnContext(ctx, "not ready", "error", err)
		return "the database does not accept writes: " + describeHindrance(err)
	}
	lag, err := lagOf(ctx, r.Store)
	switch {
	case err != nil:
		r.Logger.WarnContext(ctx, "not ready", "error", err)
		return "the store does not answer"
	case lag > maxLag:
		return fmt.Sprintf("due work has waited for %s and no worker does any", lag.Round(time.Second))
	}
	return ""
}

// lagOf is how long the oldest due task has waited while nobody works; zero while
// somebody does, who only has much to do.
func lagOf(ctx context.Context, store ledger.Store) (lag time.Duration, err error) {
	err = store.Read(ctx, func(r ledger.Reader) error {
		since, working, err := r.LateSince()
		if err == nil && !working && !since.IsZero() {
			lag = r.Now().Sub(since)
		}
		return err
	})
	return lag, err
}

// describeHindrance tells anybody why nothing can be written, without the database's own
// words.
func describeHindrance(err error) string {
	var full *ledger.StorageFullError
	var schema *ledger.SchemaError
	switch {
	case errors.As(err, &full):
		return "there is no room at " + full.Where + "; free space there"
	case errors.As(err, &schema):
		return schema.Error()
	case errors.Is(err, ledger.ErrReadOnly):
		return "it is read-only, as a standby is"
	case errors.Is(err, ledger.ErrBusy):
		return "somebody holds a lock on its tables"
	}
	return "the store does not answer"
}
