package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// commitGroup has a group run, but for those who have to wait outside the group commit.
func commitGroup(l *engine, group []*pendingTx) { runGroup(l, stopAtGates(l, group)) }

// runGroup runs a group in one transaction and sets what became of each. What is
// remembered is assumed at first, which spares a round trip; when it was not so,
// nothing was done, and the group is run again on what is. When the transaction
// fails, each of the group gets one of its own.
func runGroup(l *engine, group []*pendingTx) {
	if len(group) == 0 {
		return
	}
	asked, err := attemptGroup(l, group, l.cache.trusted)
	if errors.Is(err, ErrStale) {
		l.cache.trusted = false
		asked, err = attemptGroup(l, group, false)
	}
	switch {
	case errors.Is(err, ErrBusy):
		yieldToHolders(l, group, asked, err)
	case err != nil:
		runApart(l, group, err)
	}
}

// groupTime bounds a group's transaction at this end: the database bounds its
// statements, but may be out of reach.
const groupTime = 12 * time.Second

// attemptGroup runs a group in one transaction, and returns what it wanted to lock.
func attemptGroup(l *engine, group []*pendingTx, assume bool) (Rows, error) {
	var tx *groupTx
	ctx := group[0].ctx
	if len(group) > 1 { // it is not only the first one's
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), groupTime)
		defer cancel()
	}
	patience := patienceOf(group)
	err := l.store.InTx(Hurried(ctx), func(port Tx) error {
		if tx != nil { // the database asked for another try
			tx.giveUp()
		}
		tx = &groupTx{engine: l, port: port, pools: map[string]*poolTx{}, orgs: map[string]Organization{},
			revisions: map[string]int64{},
			assume:    assume && patience == 0, patience: patience}
		return tx.runMembers(group)
	})
	var asked Rows
	if tx != nil {
		asked = tx.asked
	}
	switch {
	case err == nil:
		tx.publishCommitted()
		l.refusals.rememberRefused(tx)
	case errors.Is(err, errNothing): // but that it was refused
		tx.giveUp()
		l.refusals.rememberRefused(tx)
	case tx != nil:
		tx.giveUp()
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
func runApart(l *engine, group []*pendingTx, err error) {
	failAll(l, group, err)
	if len(group) == 1 || isHopeless(err) {
		return
	}
	unknown := errors.Is(err, ErrOutcomeUnknown)
	for i, it := range group {
		if unknown && it.key == nil {
			continue
		}
		it.hint, it.err = nil, nil
		runGroup(l, []*pendingTx{it})
		if isHopeless(it.err) {
			failAll(l, group[i+1:], it.err)
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
func (tx *groupTx) runMembers(group []*pendingTx) error {
	if group[0].hint == nil {
		tx.assume = false
	} else if err := tx.openGroup(group); err != nil {
		return err
	}
	kept := 0
	for i, it := range group {
		tx.member = i + 1
		it.err, it.rerun, it.journaled = nil, false, false
		tx.runMember(it)
		if it.err == nil && !it.rerun || it.journaled {
			kept++
		}
	}
	switch {
	case kept == 0 && tx.assume:
		return ErrStale // a refusal may rest on what is not so any more
	case kept == 0:
		return errNothing
	}
	return tx.saveChange()
}

// runMember runs one of a group. What it cannot do here it does again alone.
func (tx *groupTx) runMember(it *pendingTx) {
	changed, woken, undos := tx.change, tx.wake, len(tx.undos)
	tx.needsOwnTx, tx.writeConflict = false, false
	defer func() {
		if it.panicked = recover(); it.panicked != nil {
			it.err = fmt.Errorf("panic: %v", it.panicked)
		}
		if tx.needsOwnTx || tx.writeConflict {
			it.rerun = true
		}
		if tx.needsOwnTx {
			it.hint = nil
		}
		if it.err != nil || it.rerun {
			tx.undoTo(undos)
			tx.change, tx.wake = changed, woken
		}
		it.journaled = !it.rerun && tx.journalRefusal(it.err)
	}()
	it.err = it.fn(it.ctx, tx)
}

// openGroup locks what a group said it would use, organizations before pools, and
// reads the answers that are stored for its idempotency keys.
func (tx *groupTx) openGroup(group []*pendingTx) error {
	tx.grouped = true
	var o LockRequest
	for _, it := range group {
		if it.org != "" {
			o.Organizations = append(o.Organizations, it.org)
		}
		if id, ok := tx.cache.findPoolOf(*it.hint); ok {
			o.Pools = append(o.Pools, id)
		}
		if it.key != nil {
			o.Replays = append(o.Replays, *it.key)
		}
	}
	slices.Sort(o.Organizations)
	slices.Sort(o.Pools)
	o.Organizations, o.Pools = slices.Compact(o.Organizations), slices.Compact(o.Pools)
	tx.asked.add(o)
	if tx.assume = tx.assume && tx.openFromMemory(o); tx.assume {
		return nil
	}
	opened, err := tx.lockRows(o)
	if err != nil {
		return fmt.Errorf("locking for a group: %w", err)
	}
	tx.replays = make(map[ReplayKey]Replay, len(opened.Replays))
	for _, r := range opened.Replays {
		tx.replays[ReplayKey{OrganizationID: r.OrganizationID, Route: r.Route, Key: r.Key}] = r
	}
	return tx.acceptLocked(opened)
}

// openFromMemory opens from memory, if everything is there and the store can check it
// later.
func (tx *groupTx) openFromMemory(o LockRequest) bool {
	a := Assumption{Pools: o.Pools, Revisions: tx.cache.revisions, NotBefore: tx.cache.seen}
	for _, id := range o.Organizations {
		org, ok := tx.cache.orgs[id]
		if !ok {
			return false
		}
		a.Organizations = append(a.Organizations, org)
	}
	for id, revision := range a.Revisions {
		if d := tx.cache.pools[id]; d == nil || d.revision != revision {
			return false
		}
	}
	for _, id := range o.Pools {
		if _, ok := a.Revisions[id]; !ok {
			return false
		}
	}
	if !tx.port.Assume(a) {
		return false
	}
	for _, org := range a.Organizations {
		tx.orgs[org.ID] = org
	}
	maps.Copy(tx.revisions, a.Revisions)
	for _, id := range o.Pools {
		d := tx.cache.pools[id]
		tx.pools[id] = &poolTx{cachedPool: d, tx: tx, Pool: d.row, touched: map[string]int{}}
	}
	tx.replays = map[ReplayKey]Replay{}
	return true
}

// acceptLocked makes the locked rows available to the transaction.
func (tx *groupTx) acceptLocked(o Locked) error {
	for _, org := range o.Organizations {
		tx.orgs[org.ID], tx.cache.orgs[org.ID] = org, org
	}
	tx.cache.revisions, tx.cache.trusted = maps.Clone(o.Revisions), true
	tx.cache.noteTime(tx.now())
	for id, revision := range o.Revisions {
		if _, locked := tx.pools[id]; !locked {
			tx.revisions[id] = revision
		}
	}
	for _, p := range o.Pools {
		d := tx.cache.pools[p.ID]
		if d == nil || d.revision != p.Revision {
			state, err := tx.port.PoolState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool: %w", err)
			}
			d = tx.cache.loadPool(state)
		}
		d.row = p
		tx.cache.names[p.Name] = p.ID
		tx.pools[p.ID] = &poolTx{cachedPool: d, tx: tx, Pool: p, touched: map[string]int{}}
	}
	return nil
}

// findPoolOf guesses the pool of a use from what the cache has.
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
