package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// commitGroup has a group run, but for those who have to wait beside the lane.
func (l *Ledger) commitGroup(group []*pendingTx) { l.runGroup(l.stopAtGates(group)) }

// runGroup runs a group in one transaction and sets what became of each. What is
// remembered is assumed at first, which spares a round trip; when it was not so,
// nothing was done, and the group is run again on what is. When the transaction
// fails, each of the group gets one of its own.
func (l *Ledger) runGroup(group []*pendingTx) {
	if len(group) == 0 {
		return
	}
	asked, err := l.attemptGroup(group, l.cache.trusted)
	if errors.Is(err, ErrStale) {
		l.cache.trusted = false
		asked, err = l.attemptGroup(group, false)
	}
	switch {
	case errors.Is(err, ErrBusy):
		l.yieldToHolders(group, asked, err)
	case err != nil:
		l.runApart(group, err)
	}
}

// groupTime bounds a group's transaction at this end: the database bounds its
// statements, but may be out of reach.
const groupTime = 12 * time.Second

// attemptGroup runs a group in one transaction, and returns what it wanted to lock.
func (l *Ledger) attemptGroup(group []*pendingTx, assume bool) (Rows, error) {
	var u *groupTx
	ctx := group[0].ctx
	if len(group) > 1 { // it is not only the first one's
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), groupTime)
		defer cancel()
	}
	patience := patienceOf(group)
	err := l.store.InTx(Hurried(ctx), func(tx Tx) error {
		if u != nil { // the database asked for another try
			u.giveUp()
		}
		u = &groupTx{Ledger: l, tx: tx, pools: map[string]*poolTx{}, orgs: map[string]Organization{},
			revisions: map[string]int64{},
			assume:    assume && patience == 0, lockPatience1: patience}
		return u.runMembers(group)
	})
	var asked Rows
	if u != nil {
		asked = u.asked
	}
	switch {
	case err == nil:
		u.publishCommitted()
		l.refusals.rememberRefused(u)
	case errors.Is(err, errNothing): // but that it was refused
		u.giveUp()
		l.refusals.rememberRefused(u)
	case u != nil:
		u.giveUp()
	}
	if errors.Is(err, errNothing) {
		return asked, nil
	}
	if assume && errors.Is(err, ErrTaken) { // perhaps an answer that was stored before
		return asked, ErrStale
	}
	return asked, err
}

// patienceOf is how long a group waits for locks; zero: as the store does.
func patienceOf(group []*pendingTx) time.Duration {
	if slices.ContainsFunc(group, func(it *pendingTx) bool { return it.patient }) {
		return lockPatience
	}
	return 0
}

// runApart gives each of a group whose transaction failed one of its own, unless
// that cannot help, or could do twice what may have been done already: then only
// those run again whose stored answer would be found.
func (l *Ledger) runApart(group []*pendingTx, err error) {
	l.failAll(group, err)
	if len(group) == 1 || isHopeless(err) {
		return
	}
	unknown := errors.Is(err, ErrOutcomeUnknown)
	for i, it := range group {
		if unknown && it.key == nil {
			continue
		}
		it.hint, it.err = nil, nil
		l.runGroup([]*pendingTx{it})
		if isHopeless(it.err) {
			l.failAll(group[i+1:], it.err)
			return
		}
	}
}

// isHopeless reports whether a failure is the database's, so that no other
// transaction would fare better now.
func isHopeless(err error) bool {
	var full *StorageFullError
	return errors.As(err, &full) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrReadOnly) ||
		errors.Is(err, context.DeadlineExceeded)
}

// errNothing ends a transaction in which nothing is to be kept.
var errNothing = errors.New("nothing to commit")

// runMembers lets each of a group do its work and saves what they changed.
func (u *groupTx) runMembers(group []*pendingTx) error {
	if group[0].hint == nil {
		u.assume = false
	} else if err := u.openGroup(group); err != nil {
		return err
	}
	kept := 0
	for i, it := range group {
		u.member = i + 1
		it.err, it.rerun, it.journaled = nil, false, false
		u.runMember(it)
		if it.err == nil && !it.rerun || it.journaled {
			kept++
		}
	}
	switch {
	case kept == 0 && u.assume:
		return ErrStale // a refusal may rest on what is not so any more
	case kept == 0:
		return errNothing
	}
	return u.saveChange()
}

// runMember runs one of a group. What it cannot do here it does again alone.
func (u *groupTx) runMember(it *pendingTx) {
	changed, woken, undos := u.change, u.wake, len(u.undos)
	u.needsOwnTx, u.writeConflict = false, false
	defer func() {
		if it.panicked = recover(); it.panicked != nil {
			it.err = fmt.Errorf("panic: %v", it.panicked)
		}
		if u.needsOwnTx || u.writeConflict {
			it.rerun = true
		}
		if u.needsOwnTx {
			it.hint = nil
		}
		if it.err != nil || it.rerun {
			u.undoTo(undos)
			u.change, u.wake = changed, woken
		}
		it.journaled = !it.rerun && u.journalRefusal(it.err)
	}()
	it.err = it.fn(it.ctx, u)
}

// openGroup locks what a group said it would use, organizations before pools, and
// reads the answers that are stored for its idempotency keys.
func (u *groupTx) openGroup(group []*pendingTx) error {
	u.grouped = true
	var o LockRequest
	for _, it := range group {
		if it.org != "" {
			o.Organizations = append(o.Organizations, it.org)
		}
		if id, ok := u.cache.findPoolOf(*it.hint); ok {
			o.Pools = append(o.Pools, id)
		}
		if it.key != nil {
			o.Replays = append(o.Replays, *it.key)
		}
	}
	slices.Sort(o.Organizations)
	slices.Sort(o.Pools)
	o.Organizations, o.Pools = slices.Compact(o.Organizations), slices.Compact(o.Pools)
	u.asked.add(o)
	if u.assume = u.assume && u.openFromMemory(o); u.assume {
		return nil
	}
	opened, err := u.lockRows(o)
	if err != nil {
		return fmt.Errorf("locking for a group: %w", err)
	}
	u.replays = make(map[ReplayKey]Replay, len(opened.Replays))
	for _, r := range opened.Replays {
		u.replays[ReplayKey{OrganizationID: r.OrganizationID, Route: r.Route, Key: r.Key}] = r
	}
	return u.acceptLocked(opened)
}

// openFromMemory opens from memory, if everything is there and the store can check it
// later.
func (u *groupTx) openFromMemory(o LockRequest) bool {
	a := Assumption{Pools: o.Pools, Revisions: u.cache.revisions, NotBefore: u.cache.seen}
	for _, id := range o.Organizations {
		org, ok := u.cache.orgs[id]
		if !ok {
			return false
		}
		a.Organizations = append(a.Organizations, org)
	}
	for id, stamp := range a.Revisions {
		if d := u.cache.pools[id]; d == nil || d.revision != stamp {
			return false
		}
	}
	for _, id := range o.Pools {
		if _, ok := a.Revisions[id]; !ok {
			return false
		}
	}
	if !u.tx.Assume(a) {
		return false
	}
	for _, org := range a.Organizations {
		u.orgs[org.ID] = org
	}
	maps.Copy(u.revisions, a.Revisions)
	for _, id := range o.Pools {
		d := u.cache.pools[id]
		u.pools[id] = &poolTx{cachedPool: d, unit: u, Pool: d.row, touched: map[string]int{}}
	}
	u.replays = map[ReplayKey]Replay{}
	return true
}

// acceptLocked puts what was locked at the unit's hands.
func (u *groupTx) acceptLocked(o Locked) error {
	for _, org := range o.Organizations {
		u.orgs[org.ID], u.cache.orgs[org.ID] = org, org
	}
	u.cache.revisions, u.cache.trusted = maps.Clone(o.Revisions), true
	u.cache.noteTime(u.now())
	for id, stamp := range o.Revisions {
		if _, locked := u.pools[id]; !locked {
			u.revisions[id] = stamp
		}
	}
	for _, p := range o.Pools {
		d := u.cache.pools[p.ID]
		if d == nil || d.revision != p.Revision {
			state, err := u.tx.PoolState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool: %w", err)
			}
			d = u.cache.loadPool(state)
		}
		d.row = p
		u.cache.names[p.Name] = p.ID
		u.pools[p.ID] = &poolTx{cachedPool: d, unit: u, Pool: p, touched: map[string]int{}}
	}
	return nil
}

// findPoolOf guesses the pool of a use from what the board has.
func (b *poolCache) findPoolOf(uses LockHint) (string, bool) {
	if uses.Pool != "" {
		if id, ok := b.names[uses.Pool]; ok {
			return id, true
		}
		_, ok := b.pools[uses.Pool]
		return uses.Pool, ok
	}
	for id, d := range b.pools {
		if _, ok := d.reservations.indexOf(uses.Reservation); ok && uses.Reservation != "" {
			return id, true
		}
		if _, ok := d.allocations.indexOf(uses.Allocation); ok && uses.Allocation != "" {
			return id, true
		}
	}
	return "", false
}
