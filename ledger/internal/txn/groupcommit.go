package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/forewarm/forewarm/ledger"
)

// groupMost is how many verbs one transaction carries at most.
const groupMost = 512

// groupCommit has the verbs of one process take turns, and gathers those that wait into
// one transaction: group commit, as databases do it for their own log (DeWitt et
// al., SIGMOD 1984). Nobody waits for company: a group is whoever came while the
// one before was being committed, so a lone verb is committed at once.
//
// Whoever finds nobody at work leads: it runs the group, its own verb included,
// and hands the lead over. There is no goroutine to stop and no queue to drain.
//
// A verb that has very much to do, such as a large batch, is heavy, and waits in the
// queue of the engine that batches have to themselves.
type groupCommit struct {
	mu    sync.Mutex
	queue []*PendingTx
	busy  bool
}

// PendingTx is one verb that waits for its turn.
type PendingTx struct {
	Ctx  context.Context
	hint *ledger.LockHint // what it locks, if that is known before it runs; nil: it runs alone
	org  string
	key  *ledger.ReplayKey
	load int // how many requests it decides on; 0 is one
	Run  func(ctx context.Context, u *Tx) error

	turn      chan struct{} // closed when it is to lead
	done      chan struct{} // closed when err is set
	err       error
	panicked  any
	rerun     bool  // has to run again, in another group
	gate      *gate // it left the queue and has to wait there
	patient   bool  // what it needs was free a moment ago: it may wait longer for locks
	journaled bool  // it failed, and the journal tells why
}

func (it *PendingTx) mayShare() bool { return it.hint != nil && !it.hint.Alone }

// heavyLoad is from how many requests on a verb is heavy; a group decides on no
// more than as many, beside its first.
const heavyLoad = 250

func (it *PendingTx) isHeavy() bool { return it.load >= heavyLoad }

// SubmitTx runs an item's verb and returns its outcome. An item that is withdrawn
// while it waits had no effect. One that meets a row that somebody else holds
// waits for it outside the group commit, and then runs from the start.
func SubmitTx(l *Engine, it *PendingTx) error {
	if it.isHeavy() && l.batches != nil {
		l = l.batches
	}
	if err := waitTurn(l, it); err != nil || it.gate == nil {
		return err
	}
	ctx, cancel := withGatePatience(it.Ctx)
	defer cancel()
	for it.gate != nil {
		if err := passGate(ctx, l, it); err != nil {
			return err
		}
	}
	return nil
}

// passGate waits until the item's gate is open, and then for its turn.
func passGate(ctx context.Context, l *Engine, it *PendingTx) error {
	one := it.gate
	defer one.waiting.Done()
	err := l.gates.waitAtGate(ctx, one, l.Store)
	l.gates.leaveGate()
	if err != nil {
		return err
	}
	it.gate, it.patient = nil, it.patient || !one.isOwn()
	return waitTurn(l, it)
}

// waitTurn waits for the item's turn, and returns when it is over.
func waitTurn(l *Engine, it *PendingTx) error {
	it.turn, it.done = make(chan struct{}), make(chan struct{})
	if l.commits.enqueue(it) {
		leadGroup(l)
	} else {
		select {
		case <-it.done:
		case <-it.turn:
			leadGroup(l)
		case <-it.Ctx.Done():
			if l.commits.withdrawTx(it) {
				return withdrawnError(it.Ctx)
			}
			select { // it is at work already, or its turn to lead has just come
			case <-it.done:
			case <-it.turn:
				leadGroup(l)
			}
		}
	}
	if it.panicked != nil {
		panic(it.panicked) // in the goroutine of whoever asked for it
	}
	return it.err
}

// withdrawnError is the error of an item whose turn did not come: nothing was done.
func withdrawnError(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("waiting for a turn: %w", ledger.ErrUnavailable)
}

// leadGroup runs the first group in the queue and hands the lead over.
func leadGroup(l *Engine) {
	group := l.commits.takeGroup()
	defer l.commits.handOver()
	defer func() { abandon(group) }() // nobody, unless it panics
	for len(group) > 0 {
		commitGroup(l, group)
		rest := group[:0:0]
		for _, it := range group {
			if it.rerun {
				it.rerun = false
				rest = append(rest, it)
			} else {
				close(it.done)
			}
		}
		group = rest
	}
}

// abandon ends the turn of a group whose leader panics: nobody else would.
func abandon(group []*PendingTx) {
	for _, it := range group {
		it.err = fmt.Errorf("the transaction that it shared panicked: %w", ledger.ErrOutcomeUnknown)
		close(it.done)
	}
}

func (ln *groupCommit) countQueued() int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return len(ln.queue)
}

// enqueue queues the item and reports whether it must lead.
func (ln *groupCommit) enqueue(it *PendingTx) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.queue = append(ln.queue, it)
	if ln.busy {
		return false
	}
	ln.busy = true
	return true
}

// takeGroup removes the next group: the first item, and if that one can share, all
// that can. Items that cannot keep their place, and come first in the end.
func (ln *groupCommit) takeGroup() []*PendingTx {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	group := []*PendingTx{ln.queue[0]}
	rest := ln.queue[:0:0]
	load := 0
	for _, it := range ln.queue[1:] {
		if group[0].mayShare() && it.mayShare() && load+it.load < heavyLoad && len(group) < groupMost {
			group, load = append(group, it), load+it.load
		} else {
			rest = append(rest, it)
		}
	}
	ln.queue = rest
	return group
}

// handOver hands the lead to whoever waits longest.
func (ln *groupCommit) handOver() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if len(ln.queue) > 0 {
		close(ln.queue[0].turn)
		return
	}
	ln.busy = false
}

// withdrawTx removes a waiting item; false means that it is not waiting any more,
// or has been told to lead.
func (ln *groupCommit) withdrawTx(it *PendingTx) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for i, other := range ln.queue {
		if other != it {
			continue
		}
		select {
		case <-it.turn:
			return false
		default:
		}
		ln.queue = append(ln.queue[:i:i], ln.queue[i+1:]...)
		return true
	}
	return false
}
