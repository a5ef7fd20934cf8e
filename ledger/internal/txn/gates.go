package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Bounds of waiting for what somebody else holds. A group waits only as long as
// the store's short lock time-out; beside it as long as busyPatience,
// and so that a second is left to say what happened. A verb whose rows were free
// in between has lockPatience in the queue: their holder is alive.
const (
	busyPatience = 8 * time.Second
	answerTime   = time.Second
	lockPatience = 2 * time.Second
)

// gates keep verbs out of the queue while a process that was paused, or works
// long, holds what they need: everybody else in the queue would wait with them.
// There is a gate for each row that is known to be held.
type gates struct {
	mu      sync.Mutex
	closed  map[string]*gate // by the id of the organization or pool
	waiting int              // at all gates
	own     *gate            // the latest that closeOwn made; only the leader of batches uses it
}

func newGates() *gates { return &gates{closed: map[string]*gate{}} }

// gate is one closed gate. One of those who wait at it asks the database; it has
// the token while it does. One without a token was closed by this process, which
// opens it.
type gate struct {
	id      string
	rows    ledger.Rows
	token   chan struct{}
	open    chan struct{}  // closed when nobody holds the rows
	waiting sync.WaitGroup // those who wait at it, until their next turn is over
}

func (one *gate) isOwn() bool { return one.token == nil }

// closeOwn closes a gate before rows that a large batch is about to lock, until open
// is called. First those have their turn who waited for the batch before, so that
// nobody waits for more than one.
func (g *gates) closeOwn(ids []string) (open func()) {
	if g.own != nil {
		g.own.waiting.Wait()
	}
	one := &gate{id: "a large batch", open: make(chan struct{})}
	g.own = one
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if g.closed[id] == nil {
			g.closed[id] = one
		}
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		maps.DeleteFunc(g.closed, func(_ string, other *gate) bool { return other == one })
		close(one.open)
	}
}

// closeGates makes gates for what is held, where there are none.
func (g *gates) closeGates(held ledger.Rows) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range held.Organizations {
		g.closeGate(id, ledger.Rows{Organizations: []string{id}})
	}
	for _, id := range held.Pools {
		g.closeGate(id, ledger.Rows{Pools: []string{id}})
	}
}

func (g *gates) closeGate(id string, rows ledger.Rows) {
	if _, there := g.closed[id]; there {
		return
	}
	one := &gate{id: id, rows: rows, token: make(chan struct{}, 1), open: make(chan struct{})}
	one.token <- struct{}{}
	g.closed[id] = one
}

// firstClosed returns the first closed gate before one of the ids, or nil.
func (g *gates) firstClosed(ids ...string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.findClosed(ids)
}

// joinFirst is firstClosed for somebody who waits at the gate from then on.
func (g *gates) joinFirst(ids ...string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.findClosed(ids)
	if one != nil {
		one.waiting.Add(1)
		g.waiting++
	}
	return one
}

// leaveGate notes that one who joined a gate does not wait there any more.
func (g *gates) leaveGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}

func (g *gates) countWaiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// findClosed is firstClosed for whoever holds the mutex.
func (g *gates) findClosed(ids []string) *gate {
	for _, id := range ids {
		if one := g.closed[id]; one != nil {
			return one
		}
	}
	return nil
}

// errGateClosed ends a transaction that came to a closed gate: whatever it needs, it has not asked for it.
var errGateClosed = fmt.Errorf("a gate is closed: %w", ledger.ErrBusy)

// waitAtGate returns when the gate is open, or ErrBusy when ctx ends before.
func (g *gates) waitAtGate(ctx context.Context, one *gate, store ledger.Store) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", one.id, ledger.ErrBusy)
	}
	select {
	case <-one.open:
		return nil
	case <-one.token:
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", one.id, ledger.ErrBusy)
	}
	if err := store.Await(ctx, one.rows); err != nil {
		one.token <- struct{}{} // for the next who waits
		if ctx.Err() != nil {
			err = ledger.ErrBusy
		}
		return fmt.Errorf("waiting for %s: %w", one.id, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.closed, one.id)
	close(one.open)
	return nil
}

// withGatePatience bounds how long a verb waits at gates.
func withGatePatience(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, busyPatience)
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, cancel
	}
	early, stop := context.WithDeadline(ctx, deadline.Add(-answerTime))
	return early, func() { stop(); cancel() }
}

// stopAtGates returns those of a group that are not before a closed gate. The
// others leave the queue and wait there.
func stopAtGates(l *Engine, group []*PendingTx) []*PendingTx {
	return slices.DeleteFunc(slices.Clone(group), func(it *PendingTx) bool {
		return it.stopAt(l.gates.joinFirst(neededRows(l, it)...))
	})
}

// stopAt sends an item to a gate, if there is one, and reports whether there is.
func (it *PendingTx) stopAt(one *gate) bool {
	if one != nil {
		it.gate, it.rerun, it.err = one, false, nil
	}
	return one != nil
}

// neededRows are the rows that an item will lock, as far as it is known.
func neededRows(l *Engine, it *PendingTx) []string {
	if it.hint == nil {
		return nil
	}
	var ids []string
	if id := l.Cache.findOrganizationOf(it); id != "" {
		ids = append(ids, id)
	}
	if id, ok := l.Cache.findPoolOf(*it.hint); ok {
		ids = append(ids, id)
	}
	return ids
}

// yieldToHolders ends the turn of a group that met a row that somebody else holds. Those
// who need it wait outside the group commit; the others run again, without them.
func yieldToHolders(l *Engine, group []*PendingTx, asked ledger.Rows, failed error) {
	held, err := heldByOthers(l, group, asked)
	if err != nil || l.IsDryRun { // within another's transaction, which is lost
		failAll(l, group, errors.Join(failed, err))
		return
	}
	l.gates.closeGates(held)
	rest := stopAtGates(l, group)
	if len(group) == 1 { // what it locks was found out by running it
		rest = slices.DeleteFunc(rest, func(it *PendingTx) bool {
			return it.stopAt(l.gates.joinFirst(slices.Concat(asked.Organizations, asked.Pools)...))
		})
	}
	if len(rest) < len(group) {
		runGroup(l, rest)
		return
	}
	if slices.ContainsFunc(rest, func(it *PendingTx) bool { return !it.patient }) { // they are free by now
		for _, it := range rest {
			it.patient = true
		}
		runGroup(l, rest)
		return
	}
	waitOutside(l, rest, asked, failed)
}

// waitOutside sends a group that failed to gates before all that it asked for: one holder after the other was quicker
// than its patience, or it came to a gate that stays closed, since all who waited there have given up. A gate before
// what is free opens at once, but for who waits at it: a group that only tried again would do so for ever.
func waitOutside(l *Engine, group []*PendingTx, asked ledger.Rows, failed error) {
	failAll(l, group, failed)
	l.gates.closeGates(asked)
	for _, it := range group {
		it.stopAt(l.gates.joinFirst(slices.Concat(asked.Organizations, asked.Pools)...))
	}
}

// heldByOthers asks which of the rows somebody else holds.
func heldByOthers(l *Engine, group []*PendingTx, asked ledger.Rows) (ledger.Rows, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(group[0].Ctx), lockPatience)
	defer cancel()
	return l.Store.Held(ctx, asked)
}

// failAll gives all of a group the same error.
func failAll(l *Engine, group []*PendingTx, err error) {
	for _, it := range group {
		it.rerun, it.err = false, err
	}
}
