// Package events lets clients follow the journal: a feed that notices new rows
// for everybody in this process with one look, and the stream that sends them.
//
// The feed only wakes; what a client gets is read from the ledger in its own
// scope, so a late or lost wake-up costs time and never an event. While nobody
// follows, the feed asks the ledger nothing.
package events

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// keep is how many of the newest events the feed remembers: more than come in a second,
// so that those who follow need not read them.
const keep = 5000

// shown is how far back in the journal Recent looks.
const shown = 500

// page is how many events one read takes.
const page = 500

// Feed notices new events. It is safe for concurrent use.
type Feed struct {
	store ledger.Store
	log   *slog.Logger

	step sync.Mutex // held while looking, so that two steps do not see the same rows
	last int64      // guarded by step: who followed until now has been woken for all up to this one

	mu       sync.Mutex
	begun    chan struct{} // holds a token when somebody follows whom Run has not seen
	followed bool          // somebody has the waiter
	waiter   chan struct{}
	recent   recentEvents

	done chan struct{}
	stop func()
}

// NewFeed returns a feed that has seen nothing yet.
func NewFeed(store ledger.Store, log *slog.Logger) *Feed {
	done := make(chan struct{})
	return &Feed{store: store, log: log, waiter: make(chan struct{}), begun: make(chan struct{}, 1), done: done,
		stop: sync.OnceFunc(func() { close(done) })}
}

// Changed returns a channel that is closed when there are events newer than
// those of now. It may be closed once for events that came before.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.followed {
		f.followed = true
		select {
		case f.begun <- struct{}{}:
		default:
		}
	}
	return f.waiter
}

// Recent reads up to n of the newest events that the scope may see, the newest
// first. It looks only at the newest of all scopes.
func (f *Feed) Recent(ctx context.Context, s ledger.Scope, n int) ([]ledger.Event, error) {
	end, err := f.readEnd(ctx)
	if err != nil {
		return nil, err
	}
	found, err := f.readAfter(ctx, max(0, end-shown), page)
	if err != nil {
		return nil, err
	}
	var out []ledger.Event
	for _, e := range slices.Backward(found) {
		if len(out) == n {
			break
		}
		if canSee(s, e) {
			out = append(out, e)
		}
	}
	return out, nil
}

// Step looks for new events once and wakes those who wait for them. Those who begin
// to wait after it are woken by the next one: what nobody waited for was not looked
// at, so that the place where it stands is never ahead of what was told.
func (f *Feed) Step(ctx context.Context) error {
	f.step.Lock()
	defer f.step.Unlock()
	if !f.isFollowed() {
		return nil
	}
	end, err := f.readEnd(ctx)
	if err != nil {
		return err
	}
	before := f.last
	if end-f.last > keep { // nobody followed for long: they read what came meanwhile themselves
		if f.last, err = f.findSettled(ctx, end); err != nil {
			return err
		}
	}
	if err := f.readNew(ctx); err != nil {
		return err
	}
	if f.last != before {
		f.wakeFollowers()
	}
	return nil
}

// readNew reads what came after the place where the feed stands, and remembers it.
func (f *Feed) readNew(ctx context.Context) error {
	for {
		fresh, err := f.readAfter(ctx, f.last, page)
		if err != nil || len(fresh) == 0 {
			return err
		}
		f.remember(fresh)
		f.last = fresh[len(fresh)-1].Seq
		if len(fresh) < page {
			return nil
		}
	}
}

func (f *Feed) remember(fresh []ledger.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent.add(f.last, fresh)
}

// remembered returns the newest events as they are now.
func (f *Feed) remembered() recentEvents {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recent
}

// Stop ends all streams, which a server's graceful shutdown would otherwise wait
// for. Clients come back and go on where they were.
func (f *Feed) Stop() { f.stop() }

// Run steps every interval, and when something urgent was committed, while somebody follows, until
// the context ends, and then stops the streams.
func (f *Feed) Run(ctx context.Context, interval time.Duration) {
	defer f.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		urgent := f.store.Urgent() // before the step: none is missed
		if err := f.Step(ctx); err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "looking for new events failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-urgent:
		}
		if f.isFollowed() {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-f.begun:
		}
	}
}

func (f *Feed) isFollowed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followed
}

func (f *Feed) wakeFollowers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.waiter)
	f.waiter, f.followed = make(chan struct{}), false
}

// findSettled finds the newest event that may be shown, by halving what lies between
// the last one and the journal's end: mostly all of it may, and the first look tells.
func (f *Feed) findSettled(ctx context.Context, high int64) (low int64, err error) {
	low = f.last
	for mid := high - 1; err == nil && low < high; mid = low + (high-low)/2 {
		var more []ledger.Event
		if more, err = f.readAfter(ctx, mid, 1); err == nil && len(more) > 0 {
			low = more[0].Seq
		} else {
			high = mid
		}
	}
	return low, err
}

// End is the newest event's number.
func (f *Feed) End(ctx context.Context) (int64, error) { return f.readEnd(ctx) }

func (f *Feed) readEnd(ctx context.Context) (end int64, err error) {
	err = f.store.Read(ctx, func(r ledger.Reader) error {
		end, err = r.JournalEnd()
		return err
	})
	return end, err
}

// readAfter reads nothing else beside, so that it gets all that may be shown.
func (f *Feed) readAfter(ctx context.Context, seq int64, limit int) (found []ledger.Event, err error) {
	err = f.store.Read(ctx, func(r ledger.Reader) error {
		found, err = r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: seq}, limit)
		return err
	})
	return found, err
}
