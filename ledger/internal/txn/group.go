package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// commitGroup has a group run, but for those who have to wait outside the group
// commit. Whoever needs what a large batch locks waits outside until it is over.
func commitGroup(l *Engine, group []*PendingTx) {
	if l.beside != nil {
		defer l.beside.closeOwn(neededRows(l, group[0]))()
	}
	preload(l, group)
	runGroup(l, stopAtGates(l, group))
}

// runGroup runs a group in one transaction and sets what became of each. What is
// remembered is assumed at first, which spares a round trip; when it was not so,
// nothing was done, and the group is run again on what is. When the transaction
// fails, each of the group gets one of its own.
func runGroup(l *Engine, group []*PendingTx) {
	if len(group) == 0 {
		return
	}
	assume := l.Cache.trust.isEarned()
	asked, err := attemptGroup(l, group, assume)
	switch {
	case errors.Is(err, ledger.ErrStale):
		l.Cache.trust.noteWrong()
		asked, err = attemptGroup(l, group, false)
	case assume && err == nil:
		l.Cache.trust.noteRight()
	}
	switch {
	case errors.Is(err, ledger.ErrBusy):
		yieldToHolders(l, group, asked, err)
	case err != nil:
		runApart(l, group, err)
	}
}

// groupTime bounds a group's transaction at this end: the database bounds its
// statements, but may be out of reach.
const groupTime = 12 * time.Second

// attemptGroup runs a group in one transaction, and returns what it wanted to lock.
func attemptGroup(l *Engine, group []*PendingTx, assume bool) (ledger.Rows, error) {
	var tx *Tx
	ctx := group[0].Ctx
	if len(group) > 1 { // it is not only the first one's
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), groupTime)
		defer cancel()
	}
	patience, panicked := patienceOf(group), true
	defer func() {
		if panicked && tx != nil { // what it changed in the cache did not happen
			tx.giveUp()
		}
	}()
	err := l.Store.InTx(ledger.Hurried(ctx), func(port ledger.Tx) error {
		if tx != nil { // the database asked for another try
			tx.giveUp()
		}
		tx = &Tx{Engine: l, Port: port, Pools: map[string]*PoolTx{}, Organizations: map[string]ledger.Organization{},
			Revisions: map[string]int64{},
			assume:    assume && patience == 0, patience: patience}
		return tx.runMembers(group)
	})
	panicked = false
	var asked ledger.Rows
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
	if assume && errors.Is(err, ledger.ErrTaken) { // perhaps an answer that was stored before
		return asked, ledger.ErrStale
	}
	return asked, err
}

// patienceOf is how long a group waits for locks; zero: as the store does.
func patienceOf(group []*PendingTx) time.Duration {
	if slices.ContainsFunc(group, func(it *PendingTx) bool { return it.patient }) {
		return lockPatience
	}
	return 0
}

// runApart gives each of a group whose transaction failed one of its own, unless
// that cannot help, or could do twice what may have been done already: then only
// those run again whose stored answer would be found.
func runApart(l *Engine, group []*PendingTx, err error) {
	failAll(l, group, err)
	if len(group) == 1 || isHopeless(err) {
		return
	}
	unknown := errors.Is(err, ledger.ErrOutcomeUnknown)
	for i, it := range group {
		if unknown && it.key == nil {
			continue
		}
		it.hint, it.err = nil, nil
		runGroup(l, []*PendingTx{it})
		if isHopeless(it.err) {
			failAll(l, group[i+1:], it.err)
			return
		}
	}
}

// isHopeless reports whether a failure is the database's, so that no other
// transaction would fare better now.
func isHopeless(err error) bool {
	var full *ledger.StorageFullError
	return errors.As(err, &full) || errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrReadOnly) ||
		errors.Is(err, context.DeadlineExceeded)
}

// errNothing ends a transaction in which nothing is to be kept.
var errNothing = errors.New("nothing to commit")

// runMembers lets each of a group do its work and saves what they changed.
func (tx *Tx) runMembers(group []*PendingTx) error {
	if group[0].hint == nil {
		tx.assume = false
	} else if err := tx.openGroup(group); err != nil {
		return err
	}
	kept := 0
	for i, it := range group {
		tx.member = i + 1
		it.err, it.rerun, it.journaled = nil, tx.Grouped && it.hint == nil, false
		if it.rerun { // an earlier try of this group has shown that it has to run alone
			continue
		}
		if tx.runMember(it); tx.stopped != nil { // the database takes nothing more in this transaction
			return tx.stopped
		}
		if it.err == nil && !it.rerun || it.journaled {
			kept++
		}
	}
	switch {
	case kept == 0 && tx.assume:
		return ledger.ErrStale // a refusal may rest on what is not so any more
	case kept == 0:
		return errNothing
	}
	return tx.saveChange()
}

// runMember runs one of a group. What it cannot do here it does again alone.
func (tx *Tx) runMember(it *PendingTx) {
	changed, woken, undos := tx.Change, tx.Wake, len(tx.undos)
	tx.NeedsOwnTx, tx.writeConflict = false, false
	defer func() {
		if it.panicked = recover(); it.panicked != nil {
			it.err = fmt.Errorf("panic: %v", it.panicked)
		}
		if tx.NeedsOwnTx || tx.writeConflict {
			it.rerun = true
		}
		if tx.NeedsOwnTx {
			it.hint = nil
		}
		if it.err != nil || it.rerun {
			tx.undoTo(undos)
			tx.Change, tx.Wake = changed, woken
		}
		it.journaled = !it.rerun && tx.JournalRefusal(it.err)
	}()
	it.err = it.Run(it.Ctx, tx)
}

// openGroup locks what a group said it would use, organizations before pools, and
// reads the answers that are stored for its idempotency keys.
func (tx *Tx) openGroup(group []*PendingTx) error {
	tx.Grouped = true
	var o ledger.LockRequest
	for _, it := range group {
		if it.hint == nil {
			continue
		}
		if org := tx.Cache.findOrganizationOf(it); org != "" {
			o.Organizations = append(o.Organizations, org)
		}
		if id, ok := tx.Cache.findPoolOf(*it.hint); ok {
			o.Pools = append(o.Pools, id)
		}
		if it.key != nil {
			o.Replays = append(o.Replays, *it.key)
		}
	}
	slices.Sort(o.Organizations)
	slices.Sort(o.Pools)
	o.Organizations, o.Pools = slices.Compact(o.Organizations), slices.Compact(o.Pools)
	tx.asked.Add(o)
	if tx.assume = tx.assume && tx.openFromMemory(o); tx.assume {
		return nil
	}
	o.Known = tx.Cache.knownPools(o.Pools)
	opened, err := tx.LockRows(o)
	if err != nil {
		return fmt.Errorf("locking for a group: %w", err)
	}
	tx.replays = make(map[ledger.ReplayKey]ledger.Replay, len(opened.Replays))
	for _, r := range opened.Replays {
		tx.replays[ledger.ReplayKey{Owner: r.Owner, Route: r.Route, Key: r.Key}] = r
	}
	return tx.AcceptLocked(opened)
}

// openFromMemory opens from memory, if everything is there and the store can check it
// later.
func (tx *Tx) openFromMemory(o ledger.LockRequest) bool {
	a := ledger.Assumption{Pools: o.Pools, Revisions: tx.Cache.revisions, NotBefore: tx.Cache.seen}
	for _, id := range o.Organizations {
		org, ok := tx.Cache.orgs[id]
		if !ok {
			return false
		}
		a.Organizations = append(a.Organizations, org)
	}
	for id, revision := range a.Revisions {
		if d := tx.Cache.Pools[id]; d == nil || d.Row.Revision != revision {
			return false
		}
	}
	for _, id := range o.Pools {
		if _, ok := a.Revisions[id]; !ok {
			return false
		}
	}
	if !tx.Port.Assume(a) {
		return false
	}
	for _, org := range a.Organizations {
		tx.Organizations[org.ID] = org
	}
	maps.Copy(tx.Revisions, a.Revisions)
	for _, id := range o.Pools {
		d := tx.Cache.Pools[id]
		tx.Pools[id] = &PoolTx{cachedPool: d, Tx: tx, Pool: d.Row, touched: map[string]int{}}
	}
	tx.replays = map[ledger.ReplayKey]ledger.Replay{}
	return true
}

// AcceptLocked makes the locked rows available to the transaction.
func (tx *Tx) AcceptLocked(o ledger.Locked) error {
	for _, org := range o.Organizations {
		tx.Organizations[org.ID], tx.Cache.orgs[org.ID] = org, org
	}
	tx.Cache.trust.noteFound(maps.Equal(tx.Cache.revisions, o.Revisions))
	tx.Cache.revisions = maps.Clone(o.Revisions)
	tx.Cache.noteTime(tx.Now())
	for id, revision := range o.Revisions {
		if _, locked := tx.Pools[id]; !locked {
			tx.Revisions[id] = revision
		}
	}
	for _, p := range o.Pools {
		d, err := tx.refreshLocked(p, o.Since)
		if err != nil {
			return err
		}
		d.Row = p
		tx.Cache.names[p.Name] = p.ID
		tx.Pools[p.ID] = &PoolTx{cachedPool: d, Tx: tx, Pool: p, touched: map[string]int{}}
	}
	return nil
}

// findOrganizationOf returns whose promises a verb is about: its actor's, or those of
// the reservation that it names.
func (b *poolCache) findOrganizationOf(it *PendingTx) string {
	if it.org != "" || it.hint.Reservation == "" {
		return it.org
	}
	for _, d := range b.Pools {
		if r, ok := d.Reservations.getRow(it.hint.Reservation); ok {
			return r.OrganizationID
		}
	}
	return ""
}

// findPoolOf infers the pool of a use from what the cache has.
func (b *poolCache) findPoolOf(uses ledger.LockHint) (string, bool) {
	if uses.Pool != "" {
		if id, ok := b.names[uses.Pool]; ok {
			return id, true
		}
		_, ok := b.Pools[uses.Pool]
		return uses.Pool, ok
	}
	for id, d := range b.Pools {
		if _, ok := d.Reservations.indexOf(uses.Reservation); ok && uses.Reservation != "" {
			return id, true
		}
		if _, ok := d.Allocations.indexOf(uses.Allocation); ok && uses.Allocation != "" {
			return id, true
		}
		if _, ok := d.Nodes.indexOf(uses.Node); ok && uses.Node != "" {
			return id, true
		}
	}
	return "", false
}
