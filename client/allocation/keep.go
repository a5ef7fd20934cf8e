package allocation

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

const (
	longestLook  = time.Minute      // between two looks at what is held, at most
	shortestLook = time.Second      // and at least
	askLater     = 10 * time.Second // the least time until a refused extension is asked for again
)

// keepLease keeps what is held until the context ends, or it is lost.
func (h *Held) keepLease(ctx context.Context) {
	defer close(h.kept)
	for {
		pause, err := h.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.why = err
			close(h.lost)
			return
		}
		if h.poll.Wait(ctx, pause) != nil {
			return
		}
	}
}

// step looks at what is held, extends its lease when half of it is over, and returns when to do
// so again. An error says that it is lost: it ended, or nobody has answered since before its
// lease must have ended.
func (h *Held) step(ctx context.Context) (pause time.Duration, lost error) {
	got, err := h.server.API.Allocation(ctx, h.Allocation().ID)
	now := h.poll.Time()
	switch {
	case err != nil && !client.IsTransient(err):
		return 0, fmt.Errorf("looking at the allocation: %w", err)
	case err != nil && !now.Before(h.leaseEnd()):
		return 0, fmt.Errorf("the lease is over, and was not extended: %w", err)
	case err == nil && got.State != "active":
		return 0, &EndedError{got}
	case err == nil:
		h.update(got)
		h.extendLease(ctx, now)
	}
	return min(longestLook, max(shortestLook, h.leaseEnd().Sub(now)/2)), nil
}

// extendLease makes the lease as long as it was at first, if it is time to. What is refused, and
// what is not answered, is asked again when half of the rest is over.
func (h *Held) extendLease(ctx context.Context, now time.Time) {
	if h.lease == 0 || now.Before(h.extendAt) {
		return
	}
	left := h.leaseEnd().Sub(now)
	by := max(time.Second, (h.lease - left).Truncate(time.Second))
	longer, err := h.server.API.Extend(ctx, h.Allocation().ID, by, client.Options{})
	if err != nil {
		h.extendAt = now.Add(max(askLater, left/2))
		return
	}
	h.update(longer)
	h.extendAt = h.leaseEnd().Add(-h.lease / 2)
}

// update takes over what was read of the allocation. By how much its lease grew is a difference
// of two times of the server.
func (h *Held) update(got contract.Allocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = h.ends.Add(got.LeaseUntil.Sub(h.now.LeaseUntil))
	if got.Access == nil {
		got.Access = h.now.Access // only who reads it is told
	}
	h.now = got
}

func (h *Held) leaseEnd() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends
}
