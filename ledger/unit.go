package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
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

// unitKey is where a context carries the unit that verbs called with it join.
type unitKey struct{ *Ledger }

// do runs a verb that locks what it finds, in a transaction of its own.
func (l *Ledger) do(ctx context.Context, actor Actor, fn func(u *unit) error) error {
	return l.share(ctx, actor, nil, fn)
}

// share runs a verb in one transaction with others that wait, if it says what it
// will lock.
func (l *Ledger) share(ctx context.Context, actor Actor, uses *Uses, fn func(u *unit) error) error {
	return l.shareLoad(ctx, actor, uses, 0, fn)
}

// shareLoad is share for a verb that decides on so many requests.
func (l *Ledger) shareLoad(ctx context.Context, actor Actor, uses *Uses, load int, fn func(u *unit) error) error {
	if u, ok := ctx.Value(unitKey{l}).(*unit); ok {
		return u.join(actor, fn)
	}
	return l.pass(&item{ctx: ctx, uses: uses, org: actor.OrganizationID, load: load, fn: func(_ context.Context, u *unit) error {
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
	err := l.store.InTx(Hurried(ctx), func(ctx context.Context, tx Tx) error {
		if u != nil { // the database asked for another try
			u.giveUp()
		}
		u = &unit{Ledger: l, tx: tx, pools: map[string]*poolUnit{}, orgs: map[string]Organization{}, stamps: map[string]int64{},
			assume: assume && patience == 0, patience: patience}
		return u.run(ctx, group)
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
func (u *unit) run(ctx context.Context, group []*item) error {
	if group[0].uses == nil {
		u.assume = false
	} else if err := u.open(group); err != nil {
		return err
	}
	kept := 0
	for i, it := range group {
		u.serial = i + 1
		it.err, it.again, it.left = nil, false, false
		u.serve(ctx, it)
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
func (u *unit) serve(ctx context.Context, it *item) {
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
	it.err = it.fn(context.WithValue(carrier{it.ctx, ctx}, unitKey{u.Ledger}, u), u)
}

// carrier is an item's context inside a transaction that another one leads.
type carrier struct {
	context.Context
	tx context.Context
}

// Value looks in the item's own context first.
func (c carrier) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.tx.Value(key)
}

// open locks what a group said it would use, organizations before pools, and
// reads the answers that are stored for its idempotency keys.
func (u *unit) open(group []*item) error {
	u.grouped = true
	var o Opening
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
func (u *unit) remember(o Opening) bool {
	a := Assumption{Pools: o.Pools, Stamps: u.board.stamps}
	for _, id := range o.Organizations {
		org, ok := u.board.orgs[id]
		if !ok {
			return false
		}
		a.Organizations = append(a.Organizations, org)
	}
	for id, stamp := range a.Stamps {
		if d := u.board.desks[id]; d == nil || d.stamp != stamp {
			return false
		}
	}
	for _, id := range o.Pools {
		if _, ok := a.Stamps[id]; !ok {
			return false
		}
	}
	if !u.tx.Assume(a) {
		return false
	}
	for _, org := range a.Organizations {
		u.orgs[org.ID] = org
	}
	maps.Copy(u.stamps, a.Stamps)
	for _, id := range o.Pools {
		d := u.board.desks[id]
		u.pools[id] = &poolUnit{desk: d, unit: u, Pool: d.row, touched: map[string]int{}}
	}
	u.replays = map[ReplayKey]Replay{}
	return true
}

// accept puts what was locked at the unit's hands.
func (u *unit) accept(o Opened) error {
	for _, org := range o.Organizations {
		u.orgs[org.ID], u.board.orgs[org.ID] = org, org
	}
	u.board.stamps, u.board.trusted = maps.Clone(o.Stamps), true
	for id, stamp := range o.Stamps {
		if _, locked := u.pools[id]; !locked {
			u.stamps[id] = stamp
		}
	}
	for _, p := range o.Pools {
		d := u.board.desks[p.ID]
		if d == nil || d.stamp != p.Stamp {
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
func (b *board) find(uses Uses) (string, bool) {
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
		p.settle(u.change.Stamps[p.Pool.ID])
	}
	for _, org := range u.change.Organizations {
		delete(u.board.orgs, org.ID)
	}
}

// lock is Tx.Open that notes what was asked for. It does not try what somebody
// else is known to hold.
func (u *unit) lock(o Opening) (Opened, error) {
	u.asked.add(o)
	if one := u.gates.before(slices.Concat(o.Organizations, o.Pools)...); one != nil {
		return Opened{}, fmt.Errorf("locking %s: %w", one.id, ErrBusy)
	}
	o.Patience = u.patience
	return u.tx.Open(o)
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
	opened, err := u.lock(Opening{Pools: []string{id}})
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

// wakePlan has the pool planned as soon as this transaction is there.
func (u *unit) wakePlan(poolID string) {
	if key := PlanKey(poolID); !slices.Contains(u.wake, key) {
		u.wake = append(u.wake, key)
	}
}

// schedulesKey is the one row that materialises schedules.
const schedulesKey = "schedules"

func sweepKey(provisioner string) string { return "sweep:" + provisioner }

func (u *unit) event(e Event) {
	e.At, e.Actor, e.Via = u.now(), u.actor.KeyID, u.actor.Via
	u.change.Events = append(u.change.Events, e)
}

func (u *unit) task(kind, subject string, at time.Time) {
	u.change.Tasks = append(u.change.Tasks, Task{
		ID: u.ids.New(ids.Task), Kind: kind, Subject: subject, State: TaskReady, RunAt: at, CreatedAt: u.now(),
	})
}

func (u *unit) keyed(key, kind, subject string) {
	u.change.Tasks = append(u.change.Tasks, Task{
		ID: u.ids.New(ids.Task), Key: key, Kind: kind, Subject: subject, State: TaskReady, RunAt: u.now(), CreatedAt: u.now(),
	})
}

// stepNode moves a node by an event and journals it. The message may be empty.
func (u *unit) stepNode(p *poolUnit, n node.Node, e node.Event, reason, message string) (node.Node, error) {
	next, err := n.Apply(e, reason, u.now())
	if err != nil {
		return n, err
	}
	p.putNode(next)
	u.event(Event{Type: "node." + string(next.State()), Subject: next.ID, PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (u *unit) stepReservation(p *poolUnit, r reservation.Reservation, e reservation.Event, reason, message string) (reservation.Reservation, error) {
	next, err := r.Apply(e, reason, u.now())
	if err != nil {
		return r, err
	}
	if !next.Live() {
		next.Cost = heldCost(p.Pool, next, u.now())
	}
	p.putReservation(next)
	if !next.Live() {
		u.chargeReservation(p, next)
	}
	u.event(Event{OrganizationID: next.OrganizationID, Type: "reservation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (u *unit) stepAllocation(p *poolUnit, a allocation.Allocation, e allocation.Event, reason, message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, u.now())
	if err != nil {
		return a, err
	}
	if !next.Live() {
		next.Cost = heldUntilEnd(p.Pool, next)
	}
	p.putAllocation(next)
	u.learnUse(p, a, next)
	if !next.Live() {
		u.chargeAllocation(p, next)
	}
	u.event(Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
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
