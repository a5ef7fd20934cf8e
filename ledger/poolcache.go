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

// poolCache is what this process remembers of the pools: their live rows, calendars
// and what each organization is committed to. Reading all that for every verb
// would cost more than the verb.
//
// It is a copy that cannot be stale: every transaction that changes something in
// a pool writes a new revision into the pool's row, and a cached pool is used only under
// the row's lock and while the revision is the one it was left with. The group commit has
// one verb at a time use it.
type poolCache struct {
	pools        map[string]*cachedPool // by pool id
	names        map[string]string      // pool name → id; a hint, checked under the lock
	commitments  map[string]*Commitments
	lastRevision uint64

	// What the last Open answered, kept in step with what was committed since, for
	// Assume. trusted is set while nobody else was seen to write.
	orgs      map[string]Organization
	revisions map[string]int64
	trusted   bool
	seen      time.Time // when any of this was read or written last, by the database's clock
}

// noteTime notes when the cache was read or written: no later transaction may have an
// earlier time, or what it hands out would overlap what was given back before.
func (b *poolCache) noteTime(at time.Time) {
	if at.After(b.seen) {
		b.seen = at
	}
}

// cachedPool is one pool in the cache.
type cachedPool struct {
	cache    *poolCache
	row      Pool // as it was last read or committed
	revision int64
	def      capacity.Pool // as its bookings are counted

	nodes        rowTable[node.Node]
	reservations rowTable[reservation.Reservation]
	allocations  rowTable[allocation.Allocation]
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

func newPoolCache() *poolCache {
	b := &poolCache{pools: map[string]*cachedPool{}, names: map[string]string{}, orgs: map[string]Organization{},
		revisions: map[string]int64{}}
	var start [8]byte
	_, _ = rand.Read(start[:]) // never fails
	b.lastRevision = binary.LittleEndian.Uint64(start[:])
	return b
}

// nextRevision returns a revision that no other process and no earlier life of this one
// has written: after a failover to a copy of the database that lagged, counting
// on would meet old numbers with other content.
func (b *poolCache) nextRevision() int64 {
	b.lastRevision++
	return int64(b.lastRevision &^ (1 << 63))
}

// loadPool puts a pool in the cache as it was read.
func (b *poolCache) loadPool(s PoolState) *cachedPool {
	d := &cachedPool{
		cache: b, row: s.Pool, revision: s.Pool.Revision, def: s.Pool.Pool, spent: map[spendKey]Spend{},
		nodes:        newRowTable(s.Nodes, func(n *node.Node) string { return n.ID }),
		reservations: newRowTable(s.Reservations, func(r *reservation.Reservation) string { return r.ID }),
		allocations:  newRowTable(s.Allocations, func(a *allocation.Allocation) string { return a.ID }),
		occupied:     map[int]string{}, taken: map[string]string{},
	}
	for a := range d.allocations.allRows() {
		d.noteHolders(a)
	}
	d.uses = make(map[string]fairshare.Usage, len(s.Uses))
	for _, use := range s.Uses {
		d.uses[use.OrganizationID] = use.Usage
	}
	for _, sum := range s.Spent {
		d.countSpend(sum)
	}
	d.cleaning = s.Pool.Cleaning
	d.rebuildCalendar(s.Pool.Pool)
	b.pools[s.Pool.ID], b.names[s.Pool.Name] = d, s.Pool.ID
	b.commitments = nil // what is counted of this pool may be of other rows
	return d
}

// rebuildCalendar builds the calendar for what the pool is now, and has everything
// counted again by it.
func (d *cachedPool) rebuildCalendar(p capacity.Pool) {
	d.def, d.cache.commitments = p, nil
	d.preferred = newPreference(p.MaxNodes)
	for _, n := range d.nodes.rows {
		d.assignSlot(*n)
	}
	d.places = calendar.NewSlots(p.MaxNodes, p.PerNode)
	d.places.SetMargin(p.Timers.Cleaning)
	d.split = nil
	if p.OnlineShare > 0 {
		d.split = map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	}
	for _, n := range d.nodes.rows {
		d.setSlotBlocked(*n)
	}
	for _, r := range d.reservations.rows {
		if r.Placed() {
			d.places.Force(r.Booking())
			d.countShare(r.Workload, r.Window, r.Shape.GPUs())
		}
	}
	for _, a := range d.allocations.rows {
		if a.Live() {
			d.places.Force(a.Booking())
			d.countShare(a.Workload, a.Window, a.Shape.GPUs())
		}
	}
	for _, x := range d.cleaning {
		d.places.Force(x.Booking())
	}
}

// countShare counts what a workload has booked of a split pool.
func (d *cachedPool) countShare(w capacity.Workload, iv calendar.Interval, gpus int) {
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

// countSpend adds what ended to the sums.
func (d *cachedPool) countSpend(s Spend) {
	key := spendKey{s.OrganizationID, s.MadeBy, s.UserID, s.Class, s.Day}
	sum := d.spent[key]
	s.Cost += sum.Cost
	s.GPUSeconds += sum.GPUSeconds
	d.spent[key] = s
}

// assignSlot notes which node a slot has.
func (d *cachedPool) assignSlot(n node.Node) {
	switch {
	case !node.Machine.Terminal(n.State()):
		d.occupied[n.Slot] = n.ID
		d.preferred.setReadiness(n.Slot, readinessOf(n))
	case d.occupied[n.Slot] == n.ID:
		d.freeSlot(n)
	}
}

// freeSlot notes that a slot has no node any more.
func (d *cachedPool) freeSlot(n node.Node) {
	delete(d.occupied, n.Slot)
	d.preferred.setReadiness(n.Slot, standingEmpty)
}

// noteHolders notes in whose hands devices are.
func (d *cachedPool) noteHolders(a allocation.Allocation) {
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
func (d *cachedPool) setReservation(from, to *reservation.Reservation) {
	d.mobile = nil
	if from != nil && from.Class == reservation.Speculative || to != nil && to.Class == reservation.Speculative {
		d.guesses = nil
	}
	if from != nil {
		d.countReservation(from, true)
		d.places.Remove(from.ID)
		if from.Placed() {
			d.countShare(from.Workload, from.Window, -from.Shape.GPUs())
		}
	}
	if to == nil {
		d.reservations.removeRow(from.ID)
		return
	}
	d.reservations.setRow(*to)
	d.countReservation(to, false)
	if to.Placed() {
		d.places.Force(to.Booking())
		d.countShare(to.Workload, to.Window, to.Shape.GPUs())
	}
}

// setAllocation replaces a row and what follows from it. A nil to takes it out.
func (d *cachedPool) setAllocation(from, to *allocation.Allocation) {
	if from != nil {
		d.countAllocation(from, true)
		d.places.Remove(from.ID)
		if from.Live() {
			d.countShare(from.Workload, from.Window, -from.Shape.GPUs())
		}
		gone := *from
		for _, h := range gone.Devices {
			if d.taken[h.UUID] == gone.ID {
				delete(d.taken, h.UUID)
			}
		}
	}
	if to == nil {
		d.allocations.removeRow(from.ID)
		return
	}
	d.allocations.setRow(*to)
	d.countAllocation(to, false)
	d.noteHolders(*to)
	if to.Live() {
		d.places.Force(to.Booking())
		d.countShare(to.Workload, to.Window, to.Shape.GPUs())
	}
}

// setNode replaces a row and what follows from it. A nil to takes it out.
func (d *cachedPool) setNode(from, to *node.Node) {
	if from != nil && d.occupied[from.Slot] == from.ID {
		d.freeSlot(*from)
	}
	if to == nil {
		d.places.Remove("kept:" + from.ID)
		d.nodes.removeRow(from.ID)
		return
	}
	d.nodes.setRow(*to)
	d.assignSlot(*to)
	d.setSlotBlocked(*to)
}

// commitmentsOf returns what an organization is committed to, counted over every pool.
// Whoever asks holds the organization's lock and has checked the revisions.
func (b *poolCache) commitmentsOf(organizationID string) *Commitments {
	if b.commitments == nil {
		b.recount()
	}
	c := b.commitments[organizationID]
	if c == nil {
		c = &Commitments{}
		b.commitments[organizationID] = c
	}
	return c
}

// recount adds everything up again.
func (b *poolCache) recount() {
	b.commitments = map[string]*Commitments{}
	for _, id := range sortedKeys(b.pools) {
		d := b.pools[id]
		for _, r := range d.reservations.rows {
			d.countReservation(r, false)
		}
		for _, a := range d.allocations.rows {
			d.countAllocation(a, false)
		}
		for _, s := range d.spent { // sums: their order does not matter
			b.commitmentsOf(s.OrganizationID).Spend(s)
		}
	}
}

func (d *cachedPool) countReservation(r *reservation.Reservation, out bool) {
	if d.cache.commitments != nil {
		d.cache.commitmentsOf(r.OrganizationID).Reservation(d.def, r, out)
	}
}

func (d *cachedPool) countAllocation(a *allocation.Allocation, out bool) {
	if d.cache.commitments != nil {
		d.cache.commitmentsOf(a.OrganizationID).Allocation(d.def, a, out)
	}
}

// refreshOthers loads what other processes changed meanwhile in pools that are not
// locked, so that what an organization holds there is counted. Nothing can be
// added to it there: that takes the organization's lock.
func (tx *groupTx) refreshOthers() error {
	for _, id := range sortedKeys(tx.revisions) {
		d := tx.cache.pools[id]
		if _, locked := tx.pools[id]; locked || d != nil && d.revision == tx.revisions[id] {
			continue
		}
		if err := tx.loadUnlocked(id); err != nil {
			return fmt.Errorf("reading pool %s: %w", id, err)
		}
	}
	return nil
}

// loadUnlocked loads a pool without its lock: what was read is whole if the revision is the
// same afterwards.
func (tx *groupTx) loadUnlocked(id string) error {
	for range 10 {
		state, err := tx.port.PoolState(id)
		if err != nil {
			return err
		}
		after, err := tx.port.Pool(id)
		if err != nil {
			return err
		}
		if after.Revision == state.Pool.Revision {
			tx.cache.loadPool(state)
			return nil
		}
	}
	return ErrConflict
}
