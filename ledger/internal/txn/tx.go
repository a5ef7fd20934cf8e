// Package txn has verbs share transactions: group commit, the cache of pools that
// it keeps true, idempotency, and the journal that every change writes.
package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Tx is a group of verbs at work in one transaction: it collects what they
// change, so that each row is written once however often it changed, and
// everything is saved together with its events and the tasks it causes.
type Tx struct {
	*Engine
	Port          ledger.Tx
	Actor         ledger.Actor
	Grouped       bool // shares the transaction: everything it needs was locked at its beginning
	Organizations map[string]ledger.Organization
	WholeCohorts  map[string]bool // cohorts of which every member is locked
	Pools         map[string]*PoolTx
	Revisions     map[string]int64 // of every pool, as read with the last lock
	replays       map[ledger.ReplayKey]ledger.Replay
	Change        ledger.Change
	jobs          jobsRead
	holders       map[string]string // organizations, by allocation, as far as they were asked for; empty: there is none
	Wake          []ledger.Wakeup
	undos         []func()
	member        int  // which of the group is at work
	NeedsOwnTx    bool // it needs a lock that the group does not have
	writeConflict bool // it changed a row that another of the group changed
	assume        bool // try what is remembered first; once opened: that was done

	refused refused

	asked    ledger.Rows   // what it locked, or wanted to
	patience time.Duration // for locks; zero: the store's
	stopped  error         // somebody else holds what it needs, and it has to wait for that
}

// ErrNeedsOwnTx ends a verb that has to run alone.
var ErrNeedsOwnTx = errors.New("needs a transaction of its own")

// InOwnTx runs a verb that locks what it finds, in a transaction of its own.
func (l *Engine) InOwnTx(ctx context.Context, actor ledger.Actor, fn func(tx *Tx) error) error {
	return l.InGroup(ctx, actor, nil, fn)
}

// InGroup runs a verb in one transaction with others that wait, if it says what it
// will lock.
func (l *Engine) InGroup(ctx context.Context, actor ledger.Actor, uses *ledger.LockHint, fn func(tx *Tx) error) error {
	return l.InGroupOf(ctx, actor, uses, 0, fn)
}

// InGroupOf is InGroup for a verb that decides on this many requests.
func (l *Engine) InGroupOf(ctx context.Context, actor ledger.Actor, uses *ledger.LockHint, load int,
	fn func(tx *Tx) error) error {
	if l.joined != nil {
		return l.joined.RunVerb(actor, fn)
	}
	return SubmitTx(l, &PendingTx{Ctx: ctx, hint: uses, org: actor.OrganizationID, load: load,
		Run: func(_ context.Context, tx *Tx) error {
			return tx.RunVerb(actor, fn)
		}})
}

// RunVerb runs one verb. When it fails, nothing that it changed stays.
func (tx *Tx) RunVerb(actor ledger.Actor, fn func(tx *Tx) error) error {
	before, changed, woken, undos := tx.Actor, tx.Change, tx.Wake, len(tx.undos)
	tx.Actor = actor
	err := fn(tx)
	tx.Actor = before
	if err != nil {
		tx.undoTo(undos)
		tx.Change, tx.Wake = changed, woken
	}
	return err
}

// BoundEngine returns an engine that works in this transaction. It must not be used
// after the transaction has ended.
func (tx *Tx) BoundEngine() *Engine {
	bound := *tx.Engine
	bound.joined, bound.Store = tx, &NestedStore{Store: tx.Store, Tx: tx.Port}
	return &bound
}

// undoTo takes back what was changed in the cache since there were n changes.
func (tx *Tx) undoTo(n int) {
	for i := len(tx.undos) - 1; i >= n; i-- {
		tx.undos[i]()
	}
	tx.undos = tx.undos[:n]
}

// giveUp takes back everything. Of a pool whose rows were written ahead more has
// changed than there is an undo for: it is forgotten, and read again.
func (tx *Tx) giveUp() {
	tx.undoTo(0)
	tx.Engine.refusals.giveBack(tx.refused.told)
	for id, p := range tx.Pools {
		if p.writtenAhead {
			delete(tx.Cache.Pools, id)
			tx.Cache.commitments = nil
		}
	}
}

// Now is the database's time, the same throughout the transaction.
func (tx *Tx) Now() time.Time { return tx.Port.Now() }

// saveChange writes everything the group changed.
func (tx *Tx) saveChange() error {
	for _, id := range SortedKeys(tx.Pools) {
		tx.Pools[id].collectChanges(&tx.Change)
	}
	tx.tellRefusals()
	tx.Change.Wake, tx.Change.Last = tx.Wake, true
	return tx.Port.Save(tx.Change)
}

// publishCommitted brings the cache to what is now committed.
func (tx *Tx) publishCommitted() {
	for _, p := range tx.Pools {
		p.advanceToCommitted(tx.Change.Revisions[p.Pool.ID])
	}
	for _, org := range tx.Change.Organizations {
		delete(tx.Cache.orgs, org.ID)
	}
}

// LockRows is the port's Lock, and notes what was asked for. It does not try what somebody
// else is known to hold; whoever is patient waits for a large batch of this process.
func (tx *Tx) LockRows(o ledger.LockRequest) (ledger.Locked, error) {
	tx.asked.Add(o)
	if one := tx.gates.firstClosed(slices.Concat(o.Organizations, o.Pools)...); one != nil && tx.waitsAt(one) {
		tx.stopped = fmt.Errorf("locking %s: %w", one.id, errGateClosed)
		return ledger.Locked{}, tx.stopped
	}
	o.Patience = tx.patience
	opened, err := tx.Port.Lock(o)
	if errors.Is(err, ledger.ErrBusy) { // it waits in line, whoever found it: the group, or one that runs alone
		tx.stopped = err
	}
	return opened, err
}

// waitsAt reports whether the transaction must end because a gate is closed.
func (tx *Tx) waitsAt(one *gate) bool { return !one.isOwn() || tx.patience == 0 }

// LockPool locks a pool once per transaction.
func (tx *Tx) LockPool(id string) (*PoolTx, error) {
	if p, ok := tx.Pools[id]; ok {
		return p, nil
	}
	if tx.Grouped {
		tx.NeedsOwnTx = true
		return nil, ErrNeedsOwnTx
	}
	opened, err := tx.LockRows(ledger.LockRequest{Pools: []string{id}})
	if err != nil {
		return nil, err
	}
	if err := tx.AcceptLocked(opened); err != nil {
		return nil, err
	}
	return tx.Pools[id], nil
}

// poolNamed finds and locks a pool.
func (tx *Tx) poolNamed(idOrName string) (*PoolTx, error) {
	for _, p := range tx.Pools {
		if p.Pool.ID == idOrName {
			return p, nil
		}
	}
	if id, ok := tx.Cache.names[idOrName]; ok {
		if p, locked := tx.Pools[id]; locked && p.Pool.Name == idOrName {
			return p, nil
		}
	}
	found, err := tx.Port.Pool(idOrName)
	if err != nil {
		return nil, err
	}
	return tx.LockPool(found.ID)
}

// LivePool finds and locks a pool that is not deleted.
func (tx *Tx) LivePool(idOrName string) (*PoolTx, error) {
	p, err := tx.poolNamed(idOrName)
	if err == nil && !p.Pool.DeletedAt.IsZero() {
		return nil, ledger.ErrNotFound
	}
	return p, err
}

// Commitments returns what a locked organization is committed to. It follows
// what the transaction changes.
func (tx *Tx) Commitments(organizationID string) (*ledger.Commitments, error) {
	if err := tx.refreshOthers(); err != nil {
		return nil, err
	}
	return tx.Cache.commitmentsOf(organizationID), nil
}

// SortedKeys lists the keys of a map in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
