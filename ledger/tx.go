package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// groupTx is a group of verbs at work in one transaction: it collects what they
// change, so that each row is written once however often it changed, and
// everything is saved together with its events and the tasks it causes.
type groupTx struct {
	*engine
	port          Tx
	actor         Actor
	grouped       bool // shares the transaction: everything it needs was locked at its beginning
	orgs          map[string]Organization
	whole         map[string]bool // cohorts of which every member is locked
	pools         map[string]*poolTx
	revisions     map[string]int64 // of every pool, as read with the last lock
	replays       map[ReplayKey]Replay
	change        Change
	wake          []string
	undos         []func()
	member        int  // which of the group is at work
	needsOwnTx    bool // it needs a lock that the group does not have
	writeConflict bool // it changed a row that another of the group changed
	assume        bool // try what is remembered first; once opened: that was done

	refused refused

	asked    Rows          // what it locked, or wanted to
	patience time.Duration // for locks; zero: the store's
}

// errNeedsOwnTx ends a verb that has to run alone.
var errNeedsOwnTx = errors.New("needs a transaction of its own")

// inOwnTx runs a verb that locks what it finds, in a transaction of its own.
func (l *engine) inOwnTx(ctx context.Context, actor Actor, fn func(tx *groupTx) error) error {
	return l.inGroup(ctx, actor, nil, fn)
}

// inGroup runs a verb in one transaction with others that wait, if it says what it
// will lock.
func (l *engine) inGroup(ctx context.Context, actor Actor, uses *LockHint, fn func(tx *groupTx) error) error {
	return l.inGroupOf(ctx, actor, uses, 0, fn)
}

// inGroupOf is share for a verb that decides on so many requests.
func (l *engine) inGroupOf(ctx context.Context, actor Actor, uses *LockHint, load int, fn func(tx *groupTx) error) error {
	if l.joined != nil {
		return l.joined.runVerb(actor, fn)
	}
	return submitTx(l, &pendingTx{ctx: ctx, hint: uses, org: actor.OrganizationID, load: load,
		fn: func(_ context.Context, tx *groupTx) error {
			return tx.runVerb(actor, fn)
		}})
}

// runVerb runs one verb. When it fails, nothing that it changed stays.
func (tx *groupTx) runVerb(actor Actor, fn func(tx *groupTx) error) error {
	before, changed, woken, undos := tx.actor, tx.change, tx.wake, len(tx.undos)
	tx.actor = actor
	err := fn(tx)
	tx.actor = before
	if err != nil {
		tx.undoTo(undos)
		tx.change, tx.wake = changed, woken
	}
	return err
}

// boundLedger returns the ledger whose verbs work in this transaction. It must not be
// used after the transaction has ended.
func (tx *groupTx) boundLedger() *Ledger {
	bound := *tx.engine
	bound.joined, bound.store = tx, &nestedStore{Store: tx.store, tx: tx.port}
	return newLedger(&bound)
}

// undoTo takes back what was changed in the cache since there were n changes.
func (tx *groupTx) undoTo(n int) {
	for i := len(tx.undos) - 1; i >= n; i-- {
		tx.undos[i]()
	}
	tx.undos = tx.undos[:n]
}

// giveUp takes back everything. Of a pool whose rows were written ahead more has
// changed than there is an undo for: it is forgotten, and read again.
func (tx *groupTx) giveUp() {
	tx.undoTo(0)
	for id, p := range tx.pools {
		if p.writtenAhead {
			delete(tx.cache.pools, id)
			tx.cache.commitments = nil
		}
	}
}

func (tx *groupTx) now() time.Time { return tx.port.Now() }

// saveChange writes everything the group changed.
func (tx *groupTx) saveChange() error {
	for _, id := range sortedKeys(tx.pools) {
		tx.pools[id].collectChanges(&tx.change)
	}
	tx.tellRefusals()
	tx.change.Wake, tx.change.Last = tx.wake, true
	return tx.port.Save(tx.change)
}

// publishCommitted brings the cache to what is now committed.
func (tx *groupTx) publishCommitted() {
	for _, p := range tx.pools {
		p.advanceToCommitted(tx.change.Revisions[p.Pool.ID])
	}
	for _, org := range tx.change.Organizations {
		delete(tx.cache.orgs, org.ID)
	}
}

// lockRows is Tx.Open that notes what was asked for. It does not try what somebody
// else is known to hold.
func (tx *groupTx) lockRows(o LockRequest) (Locked, error) {
	tx.asked.add(o)
	if one := tx.gates.firstClosed(slices.Concat(o.Organizations, o.Pools)...); one != nil {
		return Locked{}, fmt.Errorf("locking %s: %w", one.id, ErrBusy)
	}
	o.Patience = tx.patience
	return tx.port.Lock(o)
}

// lockPool locks a pool once per transaction.
func (tx *groupTx) lockPool(id string) (*poolTx, error) {
	if p, ok := tx.pools[id]; ok {
		return p, nil
	}
	if tx.grouped {
		tx.needsOwnTx = true
		return nil, errNeedsOwnTx
	}
	opened, err := tx.lockRows(LockRequest{Pools: []string{id}})
	if err != nil {
		return nil, err
	}
	if err := tx.acceptLocked(opened); err != nil {
		return nil, err
	}
	return tx.pools[id], nil
}

// poolNamed finds and locks a pool.
func (tx *groupTx) poolNamed(idOrName string) (*poolTx, error) {
	for _, p := range tx.pools {
		if p.Pool.ID == idOrName {
			return p, nil
		}
	}
	if id, ok := tx.cache.names[idOrName]; ok {
		if p, locked := tx.pools[id]; locked && p.Pool.Name == idOrName {
			return p, nil
		}
	}
	found, err := tx.port.Pool(idOrName)
	if err != nil {
		return nil, err
	}
	return tx.lockPool(found.ID)
}

// livePool finds and locks a pool that is not deleted.
func (tx *groupTx) livePool(idOrName string) (*poolTx, error) {
	p, err := tx.poolNamed(idOrName)
	if err == nil && !p.Pool.DeletedAt.IsZero() {
		return nil, ErrNotFound
	}
	return p, err
}

// commitments returns what a locked organization is committed to. It follows
// what the transaction changes.
func (tx *groupTx) commitments(organizationID string) (*Commitments, error) {
	if err := tx.refreshOthers(); err != nil {
		return nil, err
	}
	return tx.cache.commitmentsOf(organizationID), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clipText keeps names that people give from breaking lines and tables.
func clipText(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
