// Package allocation holds GPUs for a program. Acquire asks for them, waits until they are
// there, and keeps their lease; what it returns tells the environment of work on them, runs
// commands on their nodes, and gives them back.
//
// It is made of the requests of package client and the sessions of package client/session,
// which are there for whoever needs another order of them.
package allocation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
)

// Request is what Acquire asks for.
type Request struct {
	contract.AllocationCreate
	// Poll is how a full pool and nodes that boot are waited for. The zero value waits as long as
	// the context lasts.
	Poll client.Poll
	// FixedLease lets the lease end when it does. Otherwise it is extended while the GPUs are
	// held, as far as the pool's longest lease and the promises to others allow: a short one then
	// says how soon they are free after this program was killed.
	FixedLease bool
}

// EndedError says that an allocation ended, and how: its state is neither pending nor active.
type EndedError struct{ Allocation contract.Allocation }

// Error names the state, and its reason.
func (e *EndedError) Error() string {
	text := e.Allocation.ID + " is " + e.Allocation.State
	if e.Allocation.Reason != "" {
		text += " (" + e.Allocation.Reason + ")"
	}
	return text
}

// Held is GPUs that this program holds. Its methods may be called at the same time.
type Held struct {
	server session.Server
	poll   client.Poll
	lease  time.Duration // as long as this it is again after each extension; 0: it is not extended

	lost chan struct{}
	why  error // they are not held any more; set before lost is closed
	stop context.CancelFunc
	kept chan struct{} // closed when nothing keeps the lease any more

	extendAt time.Time // of whoever keeps the lease

	mu   sync.Mutex
	now  contract.Allocation // as it was read last
	ends time.Time           // the lease, at the earliest, by this machine's clock

	releasing sync.Mutex
	released  bool
}

// Acquire asks for GPUs, and returns when they can be used. A full pool is asked again, which is
// no place in a queue. When the context ends before, or the request's deadline is over, what was
// asked for is given back. The errors are a *client.Error, *EndedError, client.ErrTimeUp or the
// context's.
//
// The GPUs are held until Release, whatever becomes of the context, or until they are lost.
func Acquire(ctx context.Context, server session.Server, r Request) (*Held, error) {
	h, err := acquire(ctx, server, r)
	if err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	go h.keepLease(keeping)
	return h, nil
}

// acquire is Acquire with a lease that nobody keeps yet.
func acquire(ctx context.Context, server session.Server, r Request) (*Held, error) {
	h := &Held{server: server, poll: r.Poll, lost: make(chan struct{}), kept: make(chan struct{})}
	var askedAt time.Time
	asked, err := h.poll.Allocate(ctx, r.AllocationCreate, func(ctx context.Context, in contract.AllocationCreate,
		o client.Options) (contract.Allocation, error) {
		if !o.DryRun {
			askedAt = h.poll.Time()
			longer, cancel := outlast(ctx)
			defer cancel()
			ctx = longer
		}
		return server.API.Allocate(ctx, in, o)
	})
	if err != nil {
		return nil, fmt.Errorf("allocating GPUs: %w", err)
	}
	h.now = asked
	if err := h.awaitActive(ctx, askedAt); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for GPUs: %w", err), h.giveBack(ctx, err))
	}
	if h.lease = h.now.LeaseUntil.Sub(h.now.ActiveAt); r.FixedLease {
		h.lease = 0
	}
	h.extendAt = h.ends.Add(-h.lease / 2)
	h.poll = client.Poll{Now: r.Poll.Now, Pause: r.Poll.Pause} // the deadline was that of the wait
	return h, nil
}

// awaitActive waits for an allocation that was pending at a time. Its lease began later than it
// was last seen to be: so no comparison of this machine's clock with another's is needed.
func (h *Held) awaitActive(ctx context.Context, pendingAt time.Time) error {
	err := h.poll.Until(ctx, func(ctx context.Context) (bool, error) {
		at := h.poll.Time()
		got, err := h.server.API.Allocation(ctx, h.now.ID)
		if err != nil {
			return false, err
		}
		switch h.now = got; got.State {
		case "pending":
			pendingAt = at
			return false, nil
		case "active":
			return true, nil
		}
		return false, &EndedError{got}
	})
	if err != nil {
		return err
	}
	h.ends = pendingAt.Add(h.now.LeaseUntil.Sub(h.now.ActiveAt))
	if h.now.Access == nil {
		return fmt.Errorf("the server does not tell how to get to the GPUs of %s", h.now.ID)
	}
	for _, n := range h.now.Access.Nodes {
		if err := n.CheckEnvironment(); err != nil {
			return err
		}
	}
	return nil
}

// giveBack releases what cannot be waited for, unless it ended by itself.
func (h *Held) giveBack(ctx context.Context, why error) error {
	if _, ended := errors.AsType[*EndedError](why); ended {
		return nil
	}
	ctx, cancel := outlast(ctx)
	defer cancel()
	if _, err := h.server.API.Release(ctx, h.now.ID); err != nil {
		return fmt.Errorf("giving %s back: %w", h.now.ID, err)
	}
	return nil
}

// outlast returns a context that ends a while after ctx: a request that changes something is
// answered, so that nothing is left behind of which nobody knows.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	const grace = 10 * time.Second
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// Allocation is what is held, as it was read last.
func (h *Held) Allocation() contract.Allocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Env is the environment of work on the node of a rank, as K=V by name, ready to follow
// os.Environ in the Env of an exec.Cmd: CUDA_VISIBLE_DEVICES, NODE_RANK, MASTER_ADDR and what
// else forewarm env prints. It is nil where there is no such node.
func (h *Held) Env(rank int) []string { return h.Allocation().Environ(rank) }

// Lost is closed when the GPUs are not held any more, though nobody called Release: the lease
// could not be extended, or somebody else ended the allocation. Err says which.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Err is why the GPUs were lost; nil while they are held, and after Release.
func (h *Held) Err() error {
	select {
	case <-h.lost:
		return h.why
	default:
		return nil
	}
}

// Release gives the GPUs back, and ends what runs on them. A server that does not answer is asked
// again as long as the context lasts. What was released or lost before is not there to give.
func (h *Held) Release(ctx context.Context) error {
	h.stop()
	<-h.kept
	h.releasing.Lock()
	defer h.releasing.Unlock()
	if h.released || h.Err() != nil {
		return nil
	}
	id := h.Allocation().ID
	err := h.poll.Until(client.WithIdempotencyKey(ctx, rand.Text()), func(ctx context.Context) (bool, error) {
		_, err := h.server.API.Release(ctx, id)
		refused, ok := errors.AsType[*client.Error](err)
		if ok && refused.Problem.Code == contract.CodeStateConflict {
			err = nil // it ended by itself, and nobody has noticed yet
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("releasing %s: %w", id, err)
	}
	h.released = true
	return nil
}
