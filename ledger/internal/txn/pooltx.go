package txn

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// PoolTx is a locked pool in the hands of a transaction.
type PoolTx struct {
	*cachedPool
	Tx           *Tx
	Pool         ledger.Pool             // the row
	touched      map[string]int          // id of a row that changed → which of the group changed it
	writtenAhead bool                    // rows were written ahead of the rest
	charged      map[ledger.Account]bool // of which the use changed
	daemonsSeen  map[string]time.Time    // nil: nobody has asked for them
}

// markTouched notes that a row changes. Two of a group must not change the same row:
// it would be written once, and one version would stand for both.
func (p *PoolTx) markTouched(id string) {
	if by, ok := p.touched[id]; ok {
		if by != p.Tx.member {
			p.Tx.writeConflict = true
		}
		return
	}
	p.touched[id] = p.Tx.member
	p.Tx.undos = append(p.Tx.undos, func() { delete(p.touched, id) })
}

// PutPool changes the pool itself.
func (p *PoolTx) PutPool(next ledger.Pool) {
	p.markTouched(next.ID)
	before := p.Pool
	changed := !reflect.DeepEqual(next.Pool, before.Pool)
	if changed {
		next.DefinitionVersion = before.DefinitionVersion + 1
	}
	if p.Pool = next; changed {
		p.rebuildCalendar(next.Pool)
	}
	p.Tx.undos = append(p.Tx.undos, func() {
		if p.Pool = before; changed {
			p.rebuildCalendar(before.Pool)
		}
	})
}

// setLearned changes what the pool has learned. Unlike another change of a row, several
// of a group may make it: each adds to what the one before it left, and nobody is
// answered with the row's version.
func (p *PoolTx) setLearned(next learned.Learned) {
	before := p.Pool.Learned
	if _, ok := p.touched[p.Pool.ID]; !ok {
		p.markTouched(p.Pool.ID)
	}
	p.Pool.Learned = next
	p.Tx.undos = append(p.Tx.undos, func() { p.Pool.Learned = before })
}

// PutNode adds or changes a node.
func (p *PoolTx) PutNode(n node.Node) {
	p.markTouched(n.ID)
	before := pointerIf(p.Nodes.getRow(n.ID))
	p.setNode(before, &n)
	p.Tx.undos = append(p.Tx.undos, func() { p.setNode(&n, before) })
}

// PutReservation adds or changes a reservation.
func (p *PoolTx) PutReservation(r reservation.Reservation) {
	p.markTouched(r.ID)
	before := pointerIf(p.Reservations.getRow(r.ID))
	p.SetReservation(before, &r)
	p.Tx.undos = append(p.Tx.undos, func() { p.SetReservation(&r, before) })
}

// PutAllocation adds or changes an allocation.
func (p *PoolTx) PutAllocation(a allocation.Allocation) {
	p.markTouched(a.ID)
	before := pointerIf(p.Allocations.getRow(a.ID))
	p.SetAllocation(before, &a)
	p.Tx.undos = append(p.Tx.undos, func() { p.SetAllocation(&a, before) })
}

func pointerIf[T any](row T, ok bool) *T {
	if !ok {
		return nil
	}
	return &row
}

// collectChanges adds the rows that changed, in the order of their ids, and a new revision.
func (p *PoolTx) collectChanges(c *ledger.Change) {
	if len(p.touched) == 0 && !p.writtenAhead {
		return
	}
	p.collectRows(c)
	for _, who := range slices.SortedFunc(maps.Keys(p.charged), ledger.CompareAccounts) {
		c.Uses = append(c.Uses, ledger.PoolUse{PoolID: p.Pool.ID, Account: who, Usage: p.Uses[who]})
	}
	if c.Revisions == nil {
		c.Revisions = map[string]int64{}
	}
	c.Revisions[p.Pool.ID] = p.cache.nextRevision()
}

func (p *PoolTx) collectRows(c *ledger.Change) {
	for _, id := range SortedKeys(p.touched) {
		if n, ok := p.Nodes.getRow(id); ok {
			c.Nodes = append(c.Nodes, n)
		} else if r, ok := p.Reservations.getRow(id); ok {
			c.Reservations = append(c.Reservations, r)
		} else if a, ok := p.Allocations.getRow(id); ok {
			c.Allocations = append(c.Allocations, a)
		} else {
			c.Pools = append(c.Pools, p.Pool)
		}
	}
}

// advanceToCommitted brings the cached pool to what was committed under a revision: rows have the next
// version, and what ended leaves.
func (p *PoolTx) advanceToCommitted(revision int64) {
	if len(p.touched) == 0 && !p.writtenAhead {
		return
	}
	p.Pool.Revision, p.Pool.Changes = revision, p.Pool.Changes+1
	p.advanceRows()
	p.Row, p.cache.revisions[p.Pool.ID] = p.Pool, revision
	p.cache.noteTime(p.Tx.Now())
}

// WriteAhead takes the rows that changed so far: they are written before the
// rest, in the same transaction.
func (p *PoolTx) WriteAhead(c *ledger.Change) {
	p.collectRows(c)
	p.advanceRows()
	p.touched, p.writtenAhead = map[string]int{}, true
}

func (p *PoolTx) advanceRows() {
	if _, ok := p.touched[p.Pool.ID]; ok {
		p.Pool.Version++
	}
	for _, id := range SortedKeys(p.touched) {
		if i, ok := p.Nodes.indexOf(id); ok {
			p.advanceNode(i)
		} else if i, ok := p.Reservations.indexOf(id); ok {
			p.advanceReservation(i)
		} else if i, ok := p.Allocations.indexOf(id); ok {
			p.advanceAllocation(i)
		}
	}
}

func (p *PoolTx) advanceNode(i int) {
	n := *p.Nodes.Rows[i]
	n.Version++
	p.Nodes.Rows[i] = &n
	p.retireNode(i)
}

func (p *PoolTx) advanceReservation(i int) {
	r := *p.Reservations.Rows[i]
	r.Version++
	p.Reservations.Rows[i] = &r
	p.retireReservation(i)
}

func (p *PoolTx) advanceAllocation(i int) {
	a := *p.Allocations.Rows[i]
	a.Version++
	p.Allocations.Rows[i] = &a
	p.retireAllocation(i)
}

// CommittedVersion returns the version that a row will have once the transaction is committed.
func (p *PoolTx) CommittedVersion(id string, version int) int {
	if p == nil {
		return version
	}
	if _, ok := p.touched[id]; ok {
		return version + 1
	}
	return version
}

// FindNode returns a live node of the pool.
func (p *PoolTx) FindNode(id string) (node.Node, bool) { return p.Nodes.getRow(id) }

// FindReservation returns a live reservation of the pool.
func (p *PoolTx) FindReservation(id string) (reservation.Reservation, bool) {
	return p.Reservations.getRow(id)
}

// FindAllocation returns a live allocation of the pool.
func (p *PoolTx) FindAllocation(id string) (allocation.Allocation, bool) {
	return p.Allocations.getRow(id)
}

// NodeOnSlot returns the node that occupies the slot now.
func (p *PoolTx) NodeOnSlot(slot int) (node.Node, bool) {
	id, ok := p.occupied[slot]
	if !ok {
		return node.Node{}, false
	}
	return p.Nodes.getRow(id)
}
