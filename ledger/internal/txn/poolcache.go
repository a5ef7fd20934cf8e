package txn

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
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
	Pools        map[string]*cachedPool // by pool id
	names        map[string]string      // pool name → id; a hint, checked under the lock
	commitments  map[string]*ledger.Commitments
	lastRevision uint64

	// What the last Lock answered, kept in step with what was committed since, for
	// Assume.
	orgs      map[string]ledger.Organization
	revisions map[string]int64
	trust     trust
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
	cache      *poolCache
	Row        ledger.Pool   // as it was last read or committed
	Definition capacity.Pool // as its bookings are counted

	Nodes        rowTable[node.Node]
	Reservations rowTable[reservation.Reservation]
	Allocations  rowTable[allocation.Allocation]
	spent        map[spendKey]ledger.Spend // what ended, that still counts for a day or a period

	Places *calendar.Slots
	// Split is what each workload has booked of a split pool; nil otherwise.
	Split       map[capacity.Workload]*calendar.Profile
	occupied    map[int]string    // slot → id of its live node
	Preferred   preference        // the same, by how soon the slots are usable
	Taken       map[string]string // device in somebody's hands → allocation
	Uses        map[ledger.Account]fairshare.Usage
	speculative []admission.Speculative // see speculative; nil: to be listed again
	mobile      []string                // see movable; nil: to be listed again
	Cleaning    []learned.Cleaning      // what was given back and is not clean
	placed      []learned.Room          // that are in the calendar
	keepAhead   keepAhead
}

// keepAhead is plan.KeepAhead of a pool's row in one version. It rests on quantiles of
// all boots that were learned from, and changes with the row.
type keepAhead struct {
	version int
	by      time.Duration
}

// keepAheadNow returns plan.KeepAhead of the committed row.
func (d *cachedPool) keepAheadNow(p plan.Policy) time.Duration {
	if d.keepAhead.version != d.Row.Version {
		d.keepAhead = keepAhead{d.Row.Version, plan.KeepAhead(&d.Row.Pool, &d.Row.Learned, p)}
	}
	return d.keepAhead.by
}

func newPoolCache() *poolCache {
	b := &poolCache{Pools: map[string]*cachedPool{}, names: map[string]string{}, orgs: map[string]ledger.Organization{},
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
func (b *poolCache) loadPool(s ledger.PoolState) *cachedPool {
	d := &cachedPool{
		cache: b, Row: s.Pool, Definition: s.Pool.Pool, spent: map[spendKey]ledger.Spend{},
		Nodes:        newRowTable(s.Nodes, func(n *node.Node) string { return n.ID }),
		Reservations: newRowTable(s.Reservations, func(r *reservation.Reservation) string { return r.ID }),
		Allocations:  newRowTable(s.Allocations, func(a *allocation.Allocation) string { return a.ID }),
		occupied:     map[int]string{}, Taken: map[string]string{},
	}
	for a := range d.Allocations.All() {
		d.noteHolders(a)
	}
	d.Uses = make(map[ledger.Account]fairshare.Usage, len(s.Uses))
	for _, use := range s.Uses {
		d.Uses[use.Account] = use.Usage
	}
	for _, sum := range s.Spent {
		d.countSpend(sum)
	}
	d.Cleaning, d.placed = s.Pool.Cleaning, s.Pool.Rooms
	d.rebuildCalendar(s.Pool.Pool)
	b.Pools[s.Pool.ID], b.names[s.Pool.Name] = d, s.Pool.ID
	b.commitments = nil // what is counted of this pool may be of other rows
	return d
}

// rebuildCalendar builds the calendar for what the pool is now, and has everything
// counted again by it.
func (d *cachedPool) rebuildCalendar(p capacity.Pool) {
	d.Definition, d.cache.commitments = p, nil
	d.Preferred = newPreference(p.MaxNodes)
	for _, n := range d.Nodes.Rows {
		d.assignSlot(*n)
	}
	d.Places = calendar.NewSlots(p.MaxNodes, p.PerNode)
	d.Places.SetMargin(p.Timers.Cleaning)
	d.Split = nil
	if p.OnlineShare > 0 {
		d.Split = map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	}
	for _, n := range d.Nodes.Rows {
		d.SetSlotBlocked(*n)
	}
	for _, r := range d.Reservations.Rows {
		if r.Placed() {
			d.Places.Force(r.Booking())
			d.countShare(r.Workload, r.Window, r.Shape.GPUs())
		}
	}
	for _, a := range d.Allocations.Rows {
		d.placeAllocation(a)
	}
	for _, x := range d.Cleaning {
		d.Places.Force(x.Booking())
	}
	d.placeRooms(d.placed)
}

// countShare counts what a workload has booked of a split pool.
func (d *cachedPool) countShare(w capacity.Workload, iv calendar.Interval, gpus int) {
	if used := d.Split[w]; used != nil {
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
func (d *cachedPool) countSpend(s ledger.Spend) {
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
		d.Preferred.setReadiness(n.Slot, readinessOf(n))
	case d.occupied[n.Slot] == n.ID:
		d.freeSlot(n)
	}
}

// freeSlot notes that a slot has no node any more.
func (d *cachedPool) freeSlot(n node.Node) {
	delete(d.occupied, n.Slot)
	d.Preferred.setReadiness(n.Slot, slotEmpty)
}

// noteHolders notes in whose hands devices are.
func (d *cachedPool) noteHolders(a allocation.Allocation) {
	holds := a.Holds()
	for _, h := range a.Devices {
		switch {
		case holds:
			d.Taken[h.UUID] = a.ID
		case d.Taken[h.UUID] == a.ID:
			delete(d.Taken, h.UUID)
		}
	}
}

// SetReservation replaces a row and what follows from it. A nil to takes it out.
func (d *cachedPool) SetReservation(from, to *reservation.Reservation) {
	d.mobile = nil
	if from != nil && from.Class == reservation.Speculative || to != nil && to.Class == reservation.Speculative {
		d.speculative = nil
	}
	if from != nil {
		d.countReservation(from, true)
		d.Places.Remove(from.ID)
		if from.Placed() {
			d.countShare(from.Workload, from.Window, -from.Shape.GPUs())
		}
	}
	if to == nil {
		d.Reservations.removeRow(from.ID)
		return
	}
	d.Reservations.setRow(*to)
	d.countReservation(to, false)
	if to.Placed() {
		d.Places.Force(to.Booking())
		d.countShare(to.Workload, to.Window, to.Shape.GPUs())
	}
}

// SetAllocation replaces a row and what follows from it. A nil to takes it out.
func (d *cachedPool) SetAllocation(from, to *allocation.Allocation) {
	if from != nil {
		d.countAllocation(from, true)
		d.Places.Remove(from.ID)
		if _, placed := from.Occupies(0); placed {
			d.countShare(from.Workload, from.Window, -from.Shape.GPUs())
		}
		gone := *from
		for _, h := range gone.Devices {
			if d.Taken[h.UUID] == gone.ID {
				delete(d.Taken, h.UUID)
			}
		}
	}
	if to == nil {
		d.Allocations.removeRow(from.ID)
		return
	}
	d.Allocations.setRow(*to)
	d.countAllocation(to, false)
	d.noteHolders(*to)
	d.placeAllocation(to)
}

// placeAllocation puts an allocation into the calendar, if it takes a place there.
func (d *cachedPool) placeAllocation(a *allocation.Allocation) {
	if b, placed := a.Occupies(0); placed {
		d.Places.Force(b)
		d.countShare(a.Workload, a.Window, a.Shape.GPUs())
	}
}

// setNode replaces a row and what follows from it. A nil to takes it out.
func (d *cachedPool) setNode(from, to *node.Node) {
	if from != nil && d.occupied[from.Slot] == from.ID {
		d.freeSlot(*from)
	}
	if to == nil {
		d.Places.Remove("kept:" + from.ID)
		d.Nodes.removeRow(from.ID)
		return
	}
	d.Nodes.setRow(*to)
	d.assignSlot(*to)
	d.SetSlotBlocked(*to)
}

// commitmentsOf returns what an organization is committed to, counted over every pool.
// Whoever asks holds the organization's lock and has checked the revisions.
func (b *poolCache) commitmentsOf(organizationID string) *ledger.Commitments {
	if b.commitments == nil {
		b.recount()
	}
	c := b.commitments[organizationID]
	if c == nil {
		c = &ledger.Commitments{}
		b.commitments[organizationID] = c
	}
	return c
}

// recount adds everything up again.
func (b *poolCache) recount() {
	b.commitments = map[string]*ledger.Commitments{}
	for _, id := range SortedKeys(b.Pools) {
		d := b.Pools[id]
		for _, r := range d.Reservations.Rows {
			d.countReservation(r, false)
		}
		for _, a := range d.Allocations.Rows {
			d.countAllocation(a, false)
		}
		for _, s := range d.spent { // sums: their order does not matter
			b.commitmentsOf(s.OrganizationID).Spend(s)
		}
	}
}

func (d *cachedPool) countReservation(r *reservation.Reservation, out bool) {
	if d.cache.commitments != nil {
		d.cache.commitmentsOf(r.OrganizationID).Reservation(d.Definition, r, out)
	}
}

func (d *cachedPool) countAllocation(a *allocation.Allocation, out bool) {
	if d.cache.commitments != nil {
		d.cache.commitmentsOf(a.OrganizationID).Allocation(d.Definition, a, out)
	}
}

// SetSlotBlocked keeps the slot of a node that an operator keeps from all bookings, or
// opens it again.
func (d *cachedPool) SetSlotBlocked(n node.Node) {
	if d.Places == nil {
		return
	}
	if !n.Kept() {
		d.OpenSlot(n)
		return
	}
	d.Places.Force(plan.Kept(&n, d.Definition.PerNode))
}

func (d *cachedPool) OpenSlot(n node.Node) { d.Places.Remove(plan.KeptID(&n)) }
