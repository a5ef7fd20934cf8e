package ledger

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// board is what this process remembers of the pools: their live rows, calendars
// and what each organization is committed to. Reading all that for every verb
// would cost more than the verb.
//
// It is a copy that cannot be stale: every transaction that changes something in
// a pool writes a new stamp into the pool's row, and a desk is used only under
// the row's lock and while the stamp is the one it was left with. The lane has
// one verb at a time use it.
type board struct {
	desks   map[string]*desk  // by pool id
	names   map[string]string // pool name → id; a hint, checked under the lock
	tallies map[string]*Commitments
	stamp   uint64

	// What the last Open answered, kept in step with what was committed since, for
	// Assume. trusted is set while nobody else was seen to write.
	orgs    map[string]Organization
	stamps  map[string]int64
	trusted bool
	seen    time.Time // when any of this was read or written last, by the database's clock
}

// see notes when the board was read or written: no later transaction may have an
// earlier time, or what it hands out would overlap what was given back before.
func (b *board) see(at time.Time) {
	if at.After(b.seen) {
		b.seen = at
	}
}

// desk is one pool on the board.
type desk struct {
	board *board
	row   Pool // as it was last read or committed
	stamp int64
	def   capacity.Pool // as its bookings are counted

	nodes        table[node.Node]
	reservations table[reservation.Reservation]
	allocations  table[allocation.Allocation]
	spent        map[spendKey]Spend // what ended, that still counts for a day or a period

	places *calendar.Slots
	// split is what each workload has booked of a split pool; nil otherwise.
	split     map[capacity.Workload]*calendar.Profile
	occupied  map[int]string             // slot → id of its live node
	preferred preference                 // the same, by how soon the slots are usable
	taken     map[string]string          // device in somebody's hands → allocation
	uses      map[string]fairshare.Usage // by organization
	guesses   []admission.Speculative    // see speculative; nil: to be listed again
	mobile    []string                   // see movable; nil: to be listed again
	cleaning  []plan.Cleaning            // what was given back and is not clean
}

func newBoard() *board {
	b := &board{desks: map[string]*desk{}, names: map[string]string{}, orgs: map[string]Organization{},
		stamps: map[string]int64{}}
	var start [8]byte
	_, _ = rand.Read(start[:]) // never fails
	b.stamp = binary.LittleEndian.Uint64(start[:])
	return b
}

// next returns a stamp that no other process and no earlier life of this one
// has written: after a failover to a copy of the database that lagged, counting
// on would meet old numbers with other content.
func (b *board) next() int64 {
	b.stamp++
	return int64(b.stamp &^ (1 << 63))
}

// load puts a pool on the board as it was read.
func (b *board) load(s PoolState) *desk {
	d := &desk{
		board: b, row: s.Pool, stamp: s.Pool.Revision, def: s.Pool.Pool, spent: map[spendKey]Spend{},
		nodes:        newTable(s.Nodes, func(n *node.Node) string { return n.ID }),
		reservations: newTable(s.Reservations, func(r *reservation.Reservation) string { return r.ID }),
		allocations:  newTable(s.Allocations, func(a *allocation.Allocation) string { return a.ID }),
		occupied:     map[int]string{}, taken: map[string]string{},
	}
	for a := range d.allocations.all() {
		d.hand(a)
	}
	d.uses = make(map[string]fairshare.Usage, len(s.Uses))
	for _, use := range s.Uses {
		d.uses[use.OrganizationID] = use.Usage
	}
	for _, sum := range s.Spent {
		d.spend(sum)
	}
	d.cleaning = s.Pool.Cleaning
	d.rearrange(s.Pool.Pool)
	b.desks[s.Pool.ID], b.names[s.Pool.Name] = d, s.Pool.ID
	b.tallies = nil // what is counted of this pool may be of other rows
	return d
}

// rearrange builds the calendar for what the pool is now, and has everything
// counted again by it.
func (d *desk) rearrange(p capacity.Pool) {
	d.def, d.board.tallies = p, nil
	d.preferred = newPreference(p.MaxNodes)
	for _, n := range d.nodes.rows {
		d.seat(*n)
	}
	d.places = calendar.NewSlots(p.MaxNodes, p.PerNode)
	d.places.SetMargin(p.Timers.Cleaning)
	d.split = nil
	if p.OnlineShare > 0 {
		d.split = map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	}
	for _, n := range d.nodes.rows {
		d.block(*n)
	}
	for _, r := range d.reservations.rows {
		if r.Placed() {
			d.places.Force(r.Booking())
			d.share(r.Workload, r.Window, r.Shape.GPUs())
		}
	}
	for _, a := range d.allocations.rows {
		if a.Live() {
			d.places.Force(a.Booking())
			d.share(a.Workload, a.Window, a.Shape.GPUs())
		}
	}
	for _, x := range d.cleaning {
		d.places.Force(x.Booking())
	}
}

// share counts what a workload has booked of a split pool.
func (d *desk) share(w capacity.Workload, iv calendar.Interval, gpus int) {
	if used := d.split[w]; used != nil {
		used.Add(iv, gpus)
	}
}

// spendKey is what sums of what ended are kept by.
type spendKey struct {
	organization, madeBy, user string
	class                      reservation.Class
	day                        time.Time
}

// spend adds what ended to the sums.
func (d *desk) spend(s Spend) {
	key := spendKey{s.OrganizationID, s.MadeBy, s.UserID, s.Class, s.Day}
	sum := d.spent[key]
	s.Cost += sum.Cost
	s.GPUSeconds += sum.GPUSeconds
	d.spent[key] = s
}

// seat notes which node a slot has.
func (d *desk) seat(n node.Node) {
	switch {
	case !node.Machine.Terminal(n.State()):
		d.occupied[n.Slot] = n.ID
		d.preferred.put(n.Slot, standingOf(n))
	case d.occupied[n.Slot] == n.ID:
		d.vacate(n)
	}
}

// vacate notes that a slot has no node any more.
func (d *desk) vacate(n node.Node) {
	delete(d.occupied, n.Slot)
	d.preferred.put(n.Slot, standingEmpty)
}

// hand notes in whose hands devices are.
func (d *desk) hand(a allocation.Allocation) {
	holds := a.State() == allocation.Active || a.State() == allocation.Releasing
	for _, h := range a.Devices {
		switch {
		case holds:
			d.taken[h.UUID] = a.ID
		case d.taken[h.UUID] == a.ID:
			delete(d.taken, h.UUID)
		}
	}
}

// setReservation replaces a row and what follows from it. A nil to takes it out.
func (d *desk) setReservation(from, to *reservation.Reservation) {
	d.mobile = nil
	if from != nil && from.Class == reservation.Speculative || to != nil && to.Class == reservation.Speculative {
		d.guesses = nil
	}
	if from != nil {
		d.countReservation(from, true)
		d.places.Remove(from.ID)
		if from.Placed() {
			d.share(from.Workload, from.Window, -from.Shape.GPUs())
		}
	}
	if to == nil {
		d.reservations.remove(from.ID)
		return
	}
	d.reservations.set(*to)
	d.countReservation(to, false)
	if to.Placed() {
		d.places.Force(to.Booking())
		d.share(to.Workload, to.Window, to.Shape.GPUs())
	}
}

// setAllocation replaces a row and what follows from it. A nil to takes it out.
func (d *desk) setAllocation(from, to *allocation.Allocation) {
	if from != nil {
		d.countAllocation(from, true)
		d.places.Remove(from.ID)
		if from.Live() {
			d.share(from.Workload, from.Window, -from.Shape.GPUs())
		}
		gone := *from
		for _, h := range gone.Devices {
			if d.taken[h.UUID] == gone.ID {
				delete(d.taken, h.UUID)
			}
		}
	}
	if to == nil {
		d.allocations.remove(from.ID)
		return
	}
	d.allocations.set(*to)
	d.countAllocation(to, false)
	d.hand(*to)
	if to.Live() {
		d.places.Force(to.Booking())
		d.share(to.Workload, to.Window, to.Shape.GPUs())
	}
}

// setNode replaces a row and what follows from it. A nil to takes it out.
func (d *desk) setNode(from, to *node.Node) {
	if from != nil && d.occupied[from.Slot] == from.ID {
		d.vacate(*from)
	}
	if to == nil {
		d.places.Remove("kept:" + from.ID)
		d.nodes.remove(from.ID)
		return
	}
	d.nodes.set(*to)
	d.seat(*to)
	d.block(*to)
}

// tally returns what an organization is committed to, counted over every pool.
// Whoever asks holds the organization's lock and has checked the stamps.
func (b *board) tally(organizationID string) *Commitments {
	if b.tallies == nil {
		b.count()
	}
	c := b.tallies[organizationID]
	if c == nil {
		c = &Commitments{}
		b.tallies[organizationID] = c
	}
	return c
}

// count adds everything up again.
func (b *board) count() {
	b.tallies = map[string]*Commitments{}
	for _, id := range sortedKeys(b.desks) {
		d := b.desks[id]
		for _, r := range d.reservations.rows {
			d.countReservation(r, false)
		}
		for _, a := range d.allocations.rows {
			d.countAllocation(a, false)
		}
		for _, s := range d.spent { // sums: their order does not matter
			b.tally(s.OrganizationID).Spend(s)
		}
	}
}

func (d *desk) countReservation(r *reservation.Reservation, out bool) {
	if d.board.tallies != nil {
		d.board.tally(r.OrganizationID).Reservation(d.def, r, out)
	}
}

func (d *desk) countAllocation(a *allocation.Allocation, out bool) {
	if d.board.tallies != nil {
		d.board.tally(a.OrganizationID).Allocation(d.def, a, out)
	}
}

// current loads what other processes changed meanwhile in pools that are not
// locked, so that what an organization holds there is counted. Nothing can be
// added to it there: that takes the organization's lock.
func (u *unit) current() error {
	for _, id := range sortedKeys(u.stamps) {
		d := u.board.desks[id]
		if _, locked := u.pools[id]; locked || d != nil && d.stamp == u.stamps[id] {
			continue
		}
		if err := u.peek(id); err != nil {
			return fmt.Errorf("reading pool %s: %w", id, err)
		}
	}
	return nil
}

// peek loads a pool without its lock: what was read is whole if the stamp is the
// same afterwards.
func (u *unit) peek(id string) error {
	for range 10 {
		state, err := u.tx.PoolState(id)
		if err != nil {
			return err
		}
		after, err := u.tx.Pool(id)
		if err != nil {
			return err
		}
		if after.Revision == state.Pool.Revision {
			u.board.load(state)
			return nil
		}
	}
	return ErrConflict
}
