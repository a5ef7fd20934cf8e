package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// unit is a group of verbs at work in one transaction: it collects what they
// change, so that each row is written once however often it changed, and
// everything is saved together with its events and the tasks it causes.
type unit struct {
	*Ledger
	tx      Tx
	actor   Actor
	grouped bool // shares the transaction: everything it needs was locked at its beginning
	orgs    map[string]Organization
	whole   map[string]bool // cohorts of which every member is locked
	pools   map[string]*poolUnit
	stamps  map[string]int64 // of every pool, as read with the last lock
	replays map[ReplayKey]Replay
	change  Change
	wake    []string
	undos   []func()
	serial  int  // which of the group is at work
	misfit  bool // it needs a lock that the group does not have
	clash   bool // it changed a row that another of the group changed
	assume  bool // try what is remembered first; once opened: that was done

	refused refused

	asked    Rows          // what it locked, or wanted to
	patience time.Duration // for locks; zero: the store's
}

// errMisfit ends a verb that has to run alone.
var errMisfit = errors.New("needs a transaction of its own")

// do runs a verb that locks what it finds, in a transaction of its own.
func (l *Ledger) do(ctx context.Context, actor Actor, fn func(u *unit) error) error {
	return l.share(ctx, actor, nil, fn)
}

// share runs a verb in one transaction with others that wait, if it says what it
// will lock.
func (l *Ledger) share(ctx context.Context, actor Actor, uses *LockHint, fn func(u *unit) error) error {
	return l.shareLoad(ctx, actor, uses, 0, fn)
}

// shareLoad is share for a verb that decides on so many requests.
func (l *Ledger) shareLoad(ctx context.Context, actor Actor, uses *LockHint, load int, fn func(u *unit) error) error {
	if l.joined != nil {
		return l.joined.join(actor, fn)
	}
	return l.pass(&item{ctx: ctx, uses: uses, org: actor.OrganizationID, load: load,
		fn: func(_ context.Context, u *unit) error {
			return u.join(actor, fn)
		}})
}

// join runs one verb. When it fails, nothing that it changed stays.
func (u *unit) join(actor Actor, fn func(u *unit) error) error {
	before, changed, woken, undos := u.actor, u.change, u.wake, len(u.undos)
	u.actor = actor
	err := fn(u)
	u.actor = before
	if err != nil {
		u.undo(undos)
		u.change, u.wake = changed, woken
	}
	return err
}

// ledger returns the ledger whose verbs work in this transaction. It must not be
// used after the transaction has ended.
func (u *unit) ledger() *Ledger {
	bound := *u.Ledger
	bound.joined, bound.store = u, &nestedStore{Store: u.store, tx: u.tx}
	return &bound
}

// undo takes back what was changed on the board since there were n changes.
func (u *unit) undo(n int) {
	for i := len(u.undos) - 1; i >= n; i-- {
		u.undos[i]()
	}
	u.undos = u.undos[:n]
}

// giveUp takes back everything. Of a pool whose rows were written ahead more has
// changed than there is an undo for: it is forgotten, and read again.
func (u *unit) giveUp() {
	u.undo(0)
	for id, p := range u.pools {
		if p.ahead {
			delete(u.board.desks, id)
			u.board.tallies = nil
		}
	}
}

func (u *unit) now() time.Time { return u.tx.Now() }

// save writes everything the group changed.
func (u *unit) save() error {
	for _, id := range sortedKeys(u.pools) {
		u.pools[id].collect(&u.change)
	}
	u.tellRefusals()
	u.change.Wake, u.change.Last = u.wake, true
	return u.tx.Save(u.change)
}

// publish brings the board to what is now committed.
func (u *unit) publish() {
	for _, p := range u.pools {
		p.settle(u.change.Revisions[p.Pool.ID])
	}
	for _, org := range u.change.Organizations {
		delete(u.board.orgs, org.ID)
	}
}

// lock is Tx.Open that notes what was asked for. It does not try what somebody
// else is known to hold.
func (u *unit) lock(o LockRequest) (Locked, error) {
	u.asked.add(o)
	if one := u.gates.before(slices.Concat(o.Organizations, o.Pools)...); one != nil {
		return Locked{}, fmt.Errorf("locking %s: %w", one.id, ErrBusy)
	}
	o.Patience = u.patience
	return u.tx.Lock(o)
}

// lockPool locks a pool once per unit.
func (u *unit) lockPool(id string) (*poolUnit, error) {
	if p, ok := u.pools[id]; ok {
		return p, nil
	}
	if u.grouped {
		u.misfit = true
		return nil, errMisfit
	}
	opened, err := u.lock(LockRequest{Pools: []string{id}})
	if err != nil {
		return nil, err
	}
	if err := u.accept(opened); err != nil {
		return nil, err
	}
	return u.pools[id], nil
}

// poolNamed finds and locks a pool.
func (u *unit) poolNamed(idOrName string) (*poolUnit, error) {
	for _, p := range u.pools {
		if p.Pool.ID == idOrName {
			return p, nil
		}
	}
	if id, ok := u.board.names[idOrName]; ok {
		if p, locked := u.pools[id]; locked && p.Pool.Name == idOrName {
			return p, nil
		}
	}
	found, err := u.tx.Pool(idOrName)
	if err != nil {
		return nil, err
	}
	return u.lockPool(found.ID)
}

// livePool finds and locks a pool that is not deleted.
func (u *unit) livePool(idOrName string) (*poolUnit, error) {
	p, err := u.poolNamed(idOrName)
	if err == nil && !p.Pool.DeletedAt.IsZero() {
		return nil, ErrNotFound
	}
	return p, err
}

// commitments returns what a locked organization is committed to. It follows
// what the unit changes.
func (u *unit) commitments(organizationID string) (*Commitments, error) {
	if err := u.current(); err != nil {
		return nil, err
	}
	return u.board.tally(organizationID), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip keeps names that people give from breaking lines and tables.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
