// Package events lets clients follow the journal: a feed that notices new rows
// for everybody in this process with one query, and the stream that sends them.
//
// The feed only wakes; what a client gets is read from the ledger in its own
// scope, so a late or lost wake-up costs time and never an event.
package events

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// keep is how many of the newest events the feed remembers.
const keep = 500

// page is how many events one read takes.
const page = 500

// Feed notices new events. It is safe for concurrent use.
type Feed struct {
	store ledger.Store
	log   *slog.Logger

	step   sync.Mutex // held while reading, so that two steps do not see the same rows
	mu     sync.Mutex
	last   int64
	sought bool
	recent []ledger.Event
	waiter chan struct{}
	done   chan struct{}
	stop   func()
}

// NewFeed returns a feed that has seen nothing yet.
func NewFeed(store ledger.Store, log *slog.Logger) *Feed {
	done := make(chan struct{})
	return &Feed{store: store, log: log, waiter: make(chan struct{}), done: done,
		stop: sync.OnceFunc(func() { close(done) })}
}

// Changed returns a channel that is closed when there are events newer than
// those of now.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiter
}

// Recent returns up to n of the newest events that the scope may see, the newest
// first.
func (f *Feed) Recent(s ledger.Scope, n int) []ledger.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []ledger.Event
	for _, e := range slices.Backward(f.recent) {
		if len(out) == n {
			break
		}
		if s.All || s.OrganizationID != "" && e.OrganizationID == s.OrganizationID {
			out = append(out, e)
		}
	}
	return out
}

// Step looks for new events once and wakes those who wait for them.
func (f *Feed) Step(ctx context.Context) error {
	f.step.Lock()
	defer f.step.Unlock()
	if err := f.findEnd(ctx); err != nil {
		return err
	}
	for {
		fresh, err := f.readAfter(ctx, f.last, page)
		if err != nil {
			return err
		}
		f.publish(fresh)
		if len(fresh) < page {
			return nil
		}
	}
}

// Stop ends all streams, which a server's graceful shutdown would otherwise wait
// for. Clients come back and go on where they were.
func (f *Feed) Stop() { f.stop() }

// Run steps every interval until the context ends, and then stops the streams.
func (f *Feed) Run(ctx context.Context, interval time.Duration) {
	defer f.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := f.Step(ctx); err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "looking for new events failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *Feed) publish(fresh []ledger.Event) {
	if len(fresh) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = fresh[len(fresh)-1].Seq
	f.recent = append(f.recent, fresh...)
	f.recent = slices.Clone(f.recent[max(0, len(f.recent)-keep):])
	close(f.waiter)
	f.waiter = make(chan struct{})
}

// findEnd finds the end of a journal that may be long, by doubling and halving,
// and stands a little before it.
func (f *Feed) findEnd(ctx context.Context) error {
	if f.sought {
		return nil
	}
	low, high := int64(0), int64(1)
	for {
		more, err := f.readAfter(ctx, high, 1)
		if err != nil {
			return err
		}
		if len(more) == 0 {
			break
		}
		low, high = high, high*2
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		more, err := f.readAfter(ctx, mid, 1)
		if err != nil {
			return err
		}
		if len(more) == 0 {
			high = mid
		} else {
			low = mid
		}
	}
	f.last, f.sought = max(0, low-keep), true
	return nil
}

func (f *Feed) readAfter(ctx context.Context, seq int64, limit int) (found []ledger.Event, err error) {
	err = f.store.Read(ctx, func(r ledger.Reader) error {
		found, err = r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: seq}, limit)
		return err
	})
	return found, err
}
