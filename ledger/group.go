package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// commit has a group run, but for those who have to wait beside the lane.
func (l *Ledger) commit(group []*item) { l.run(l.standBack(group)) }

// run runs a group in one transaction and sets what became of each. What is
// remembered is assumed at first, which spares a round trip; when it was not so,
// nothing was done, and the group is run again on what is. When the transaction
// fails, each of the group gets one of its own.
func (l *Ledger) run(group []*item) {
	if len(group) == 0 {
		return
	}
	asked, err := l.attempt(group, l.board.trusted)
	if errors.Is(err, ErrStale) {
		l.board.trusted = false
		asked, err = l.attempt(group, false)
	}
	switch {
	case errors.Is(err, ErrBusy):
		l.yield(group, asked, err)
	case err != nil:
		l.apart(group, err)
	}
}

// groupTime bounds a group's transaction at this end: the database bounds its
// statements, but may be out of reach.
const groupTime = 12 * time.Second

// attempt runs a group in one transaction, and returns what it wanted to lock.
func (l *Ledger) attempt(group []*item, assume bool) (Rows, error) {
	var u *unit
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
		u = &unit{Ledger: l, tx: tx, pools: map[string]*poolUnit{}, orgs: map[string]Organization{},
			stamps: map[string]int64{},
			assume: assume && patience == 0, patience: patience}
		return u.run(group)
	})
	var asked Rows
	if u != nil {
		asked = u.asked
	}
	switch {
	case err == nil:
		u.publish()
		l.refusals.remember(u)
	case errors.Is(err, errNothing): // but that it was refused
		u.giveUp()
		l.refusals.remember(u)
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
func patienceOf(group []*item) time.Duration {
	if slices.ContainsFunc(group, func(it *item) bool { return it.patient }) {
		return lockPatience
	}
	return 0
}

// apart gives each of a group whose transaction failed one of its own, unless
// that cannot help, or could do twice what may have been done already: then only
// those run again whose stored answer would be found.
func (l *Ledger) apart(group []*item, err error) {
	l.refuse(group, err)
	if len(group) == 1 || hopeless(err) {
		return
	}
	unknown := errors.Is(err, ErrOutcomeUnknown)
	for i, it := range group {
		if unknown && it.key == nil {
			continue
		}
		it.uses, it.err = nil, nil
		l.run([]*item{it})
		if hopeless(it.err) {
			l.refuse(group[i+1:], it.err)
			return
		}
	}
}

// hopeless reports whether a failure is the database's, so that no other
// transaction would fare better now.
func hopeless(err error) bool {
	var full *StorageFullError
	return errors.As(err, &full) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrReadOnly) ||
		errors.Is(err, context.DeadlineExceeded)
}

// errNothing ends a transaction in which nothing is to be kept.
var errNothing = errors.New("nothing to commit")

// run lets each of a group do its work and saves what they changed.
func (u *unit) run(group []*item) error {
	if group[0].uses == nil {
		u.assume = false
	} else if err := u.open(group); err != nil {
		return err
	}
	kept := 0
	for i, it := range group {
		u.serial = i + 1
		it.err, it.again, it.left = nil, false, false
		u.serve(it)
		if it.err == nil && !it.again || it.left {
			kept++
		}
	}
	switch {
	case kept == 0 && u.assume:
		return ErrStale // a refusal may rest on what is not so any more
	case kept == 0:
		return errNothing
	}
	return u.save()
}

// serve runs one of a group. What it cannot do here it does again alone.
func (u *unit) serve(it *item) {
	changed, woken, undos := u.change, u.wake, len(u.undos)
	u.misfit, u.clash = false, false
	defer func() {
		if it.panicked = recover(); it.panicked != nil {
			it.err = fmt.Errorf("panic: %v", it.panicked)
		}
		if u.misfit || u.clash {
			it.again = true
		}
		if u.misfit {
			it.uses = nil
		}
		if it.err != nil || it.again {
			u.undo(undos)
			u.change, u.wake = changed, woken
		}
		it.left = !it.again && u.leave(it.err)
	}()
	it.err = it.fn(it.ctx, u)
}

// open locks what a group said it would use, organizations before pools, and
// reads the answers that are stored for its idempotency keys.
func (u *unit) open(group []*item) error {
	u.grouped = true
	var o LockRequest
	for _, it := range group {
		if it.org != "" {
			o.Organizations = append(o.Organizations, it.org)
		}
		if id, ok := u.board.find(*it.uses); ok {
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
	if u.assume = u.assume && u.remember(o); u.assume {
		return nil
	}
	opened, err := u.lock(o)
	if err != nil {
		return fmt.Errorf("locking for a group: %w", err)
	}
	u.replays = make(map[ReplayKey]Replay, len(opened.Replays))
	for _, r := range opened.Replays {
		u.replays[ReplayKey{OrganizationID: r.OrganizationID, Route: r.Route, Key: r.Key}] = r
	}
	return u.accept(opened)
}

// remember opens from memory, if everything is there and the store can check it
// later.
func (u *unit) remember(o LockRequest) bool {
	a := Assumption{Pools: o.Pools, Revisions: u.board.stamps, NotBefore: u.board.seen}
	for _, id := range o.Organizations {
		org, ok := u.board.orgs[id]
		if !ok {
			return false
		}
		a.Organizations = append(a.Organizations, org)
	}
	for id, stamp := range a.Revisions {
		if d := u.board.desks[id]; d == nil || d.stamp != stamp {
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
	maps.Copy(u.stamps, a.Revisions)
	for _, id := range o.Pools {
		d := u.board.desks[id]
		u.pools[id] = &poolUnit{desk: d, unit: u, Pool: d.row, touched: map[string]int{}}
	}
	u.replays = map[ReplayKey]Replay{}
	return true
}

// accept puts what was locked at the unit's hands.
func (u *unit) accept(o Locked) error {
	for _, org := range o.Organizations {
		u.orgs[org.ID], u.board.orgs[org.ID] = org, org
	}
	u.board.stamps, u.board.trusted = maps.Clone(o.Revisions), true
	u.board.see(u.now())
	for id, stamp := range o.Revisions {
		if _, locked := u.pools[id]; !locked {
			u.stamps[id] = stamp
		}
	}
	for _, p := range o.Pools {
		d := u.board.desks[p.ID]
		if d == nil || d.stamp != p.Revision {
			state, err := u.tx.PoolState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool: %w", err)
			}
			d = u.board.load(state)
		}
		d.row = p
		u.board.names[p.Name] = p.ID
		u.pools[p.ID] = &poolUnit{desk: d, unit: u, Pool: p, touched: map[string]int{}}
	}
	return nil
}

// find guesses the pool of a use from what the board has.
func (b *board) find(uses LockHint) (string, bool) {
	if uses.Pool != "" {
		if id, ok := b.names[uses.Pool]; ok {
			return id, true
		}
		_, ok := b.desks[uses.Pool]
		return uses.Pool, ok
	}
	for id, d := range b.desks {
		if _, ok := d.reservations.find(uses.Reservation); ok && uses.Reservation != "" {
			return id, true
		}
		if _, ok := d.allocations.find(uses.Allocation); ok && uses.Allocation != "" {
			return id, true
		}
	}
	return "", false
}
