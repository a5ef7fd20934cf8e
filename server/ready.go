package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

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

// readiness is what the last look found.
type readiness struct {
	mu      sync.Mutex // held by whoever looks; the others want to know too
	at      time.Time
	trouble string // empty: none
}

// ready reports whether the store takes writes and due work is being sent out.
func (s *Server) ready(c *gin.Context) {
	if trouble := s.look(c.Request.Context()); trouble != "" {
		c.String(http.StatusServiceUnavailable, "%s\n", trouble)
		return
	}
	c.String(http.StatusOK, "ready\n")
}

// look says what is wrong, which may have been found a moment ago.
func (s *Server) look(ctx context.Context) string {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.cfg.Clock.Now()
	if age := now.Sub(r.at); !r.at.IsZero() && age >= 0 && age < readyFor {
		return r.trouble
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime) // it is not only this one's answer
	defer cancel()
	r.trouble, r.at = s.trouble(ctx), now
	s.cfg.Metric.Ready(r.trouble == "")
	return r.trouble
}

func (s *Server) trouble(ctx context.Context) string {
	store := s.cfg.Ledger.Store()
	if err := store.CheckWrites(ctx); err != nil {
		s.cfg.Logger.WarnContext(ctx, "not ready", "error", err)
		return "the database does not accept writes: " + hindrance(err)
	}
	lag, err := lagOf(ctx, store)
	switch {
	case err != nil:
		s.cfg.Logger.WarnContext(ctx, "not ready", "error", err)
		return "the store does not answer"
	case lag > maxLag:
		return fmt.Sprintf("due work waits since %s", lag.Round(time.Second))
	}
	return ""
}

// lagOf is how late the oldest due task is.
func lagOf(ctx context.Context, store ledger.Store) (lag time.Duration, err error) {
	err = store.Read(ctx, func(r ledger.Reader) error {
		next, err := r.NextTask()
		if err == nil && !next.IsZero() {
			lag = r.Now().Sub(next)
		}
		return err
	})
	return lag, err
}

// hindrance tells anybody why nothing can be written, without the database's own
// words.
func hindrance(err error) string {
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
