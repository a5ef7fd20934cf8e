package ledger

import (
	"reflect"

	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// poolTx is a locked pool in the hands of a transaction.
type poolTx struct {
	*cachedPool
	tx           *groupTx
	Pool         Pool            // the row
	touched      map[string]int  // id of a row that changed → which of the group changed it
	writtenAhead bool            // rows were written ahead of the rest
	charged      map[string]bool // organizations of which the use changed
}

// markTouched notes that a row changes. Two of a group must not change the same row:
// it would be written once, and one version would stand for both.
func (p *poolTx) markTouched(id string) {
	if by, ok := p.touched[id]; ok {
		if by != p.tx.member {
			p.tx.writeConflict = true
		}
		return
	}
	p.touched[id] = p.tx.member
	p.tx.undos = append(p.tx.undos, func() { delete(p.touched, id) })
}

func (p *poolTx) putPool(next Pool) {
	p.markTouched(next.ID)
	before := p.Pool
	changed := !reflect.DeepEqual(next.Pool, before.Pool)
	if changed {
		next.DefinitionVersion = before.DefinitionVersion + 1
	}
	if p.Pool = next; changed {
		p.rebuildCalendar(next.Pool)
	}
	p.tx.undos = append(p.tx.undos, func() {
		if p.Pool = before; changed {
			p.rebuildCalendar(before.Pool)
		}
	})
}

// setLearned changes what the pool has learned. Unlike another change of a row, several
// of a group may make it: each adds to what the one before it left, and nobody is
// answered with the row's version.
func (p *poolTx) setLearned(next plan.Learned) {
	before := p.Pool.Learned
	if _, ok := p.touched[p.Pool.ID]; !ok {
		p.markTouched(p.Pool.ID)
	}
	p.Pool.Learned = next
	p.tx.undos = append(p.tx.undos, func() { p.Pool.Learned = before })
}

func (p *poolTx) putNode(n node.Node) {
	p.markTouched(n.ID)
	before := pointerIf(p.nodes.getRow(n.ID))
	p.setNode(before, &n)
	p.tx.undos = append(p.tx.undos, func() { p.setNode(&n, before) })
}

func (p *poolTx) putReservation(r reservation.Reservation) {
	p.markTouched(r.ID)
	before := pointerIf(p.reservations.getRow(r.ID))
	p.setReservation(before, &r)
	p.tx.undos = append(p.tx.undos, func() { p.setReservation(&r, before) })
}

func (p *poolTx) putAllocation(a allocation.Allocation) {
	p.markTouched(a.ID)
	before := pointerIf(p.allocations.getRow(a.ID))
	p.setAllocation(before, &a)
	p.tx.undos = append(p.tx.undos, func() { p.setAllocation(&a, before) })
}

func pointerIf[T any](row T, ok bool) *T {
	if !ok {
		return nil
	}
	return &row
}

// collectChanges adds the rows that changed, in the order of their ids, and a new revision.
func (p *poolTx) collectChanges(c *Change) {
	if len(p.touched) == 0 && !p.writtenAhead {
		return
	}
	p.collectRows(c)
	for _, id := range sortedKeys(p.charged) {
		c.Uses = append(c.Uses, PoolUse{PoolID: p.Pool.ID, OrganizationID: id, Usage: p.uses[id]})
	}
	if c.Revisions == nil {
		c.Revisions = map[string]int64{}
	}
	c.Revisions[p.Pool.ID] = p.cache.nextRevision()
}

func (p *poolTx) collectRows(c *Change) {
	for _, id := range sortedKeys(p.touched) {
		if n, ok := p.nodes.getRow(id); ok {
			c.Nodes = append(c.Nodes, n)
		} else if r, ok := p.reservations.getRow(id); ok {
			c.Reservations = append(c.Reservations, r)
		} else if a, ok := p.allocations.getRow(id); ok {
			c.Allocations = append(c.Allocations, a)
		} else {
			c.Pools = append(c.Pools, p.Pool)
		}
	}
}

// advanceToCommitted brings the cached pool to what was committed under a revision: rows have the next
// version, and what ended leaves.
func (p *poolTx) advanceToCommitted(revision int64) {
	if len(p.touched) == 0 && !p.writtenAhead {
		return
	}
	p.revision, p.Pool.Revision = revision, revision
	p.advanceRows()
	p.row, p.cache.revisions[p.Pool.ID] = p.Pool, revision
	p.cache.noteTime(p.tx.now())
}

// writeAhead takes the rows that changed so far: they are written before the
// rest, in the same transaction.
func (p *poolTx) writeAhead(c *Change) {
	p.collectRows(c)
	p.advanceRows()
	p.touched, p.writtenAhead = map[string]int{}, true
}

func (p *poolTx) advanceRows() {
	if _, ok := p.touched[p.Pool.ID]; ok {
		p.Pool.Version++
	}
	for _, id := range sortedKeys(p.touched) {
		if i, ok := p.nodes.indexOf(id); ok {
			p.advanceNode(i)
		} else if i, ok := p.reservations.indexOf(id); ok {
			p.advanceReservation(i)
		} else if i, ok := p.allocations.indexOf(id); ok {
			p.advanceAllocation(i)
		}
	}
}

func (p *poolTx) advanceNode(i int) {
	n := *p.nodes.rows[i]
	n.Version++
	if p.nodes.rows[i] = &n; node.Machine.Terminal(n.State()) {
		p.nodes.rows = slices.Delete(p.nodes.rows, i, i+1)
	}
}

func (p *poolTx) advanceReservation(i int) {
	r := *p.reservations.rows[i]
	r.Version++
	if p.reservations.rows[i] = &r; r.Live() {
		return
	}
	p.reservations.rows = slices.Delete(p.reservations.rows, i, i+1)
	s := reservationSpend(&r)
	p.countSpend(Spend{OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, UserID: r.UserID, Class: r.Class,
		Day: quota.Day(r.Window.Start), Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}

func (p *poolTx) advanceAllocation(i int) {
	a := *p.allocations.rows[i]
	a.Version++
	if p.allocations.rows[i] = &a; a.Live() {
		return
	}
	p.allocations.rows = slices.Delete(p.allocations.rows, i, i+1)
	s := allocationSpend(p.def, &a)
	p.countSpend(Spend{OrganizationID: a.OrganizationID, MadeBy: a.HeldBy, UserID: a.UserID, Day: quota.Day(a.Window.Start),
		Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}

// committedVersion returns the version that a row will have once the transaction is committed.
func (p *poolTx) committedVersion(id string, version int) int {
	if p == nil {
		return version
	}
	if _, ok := p.touched[id]; ok {
		return version + 1
	}
	return version
}

func (p *poolTx) findNode(id string) (node.Node, bool) { return p.nodes.getRow(id) }

func (p *poolTx) findReservation(id string) (reservation.Reservation, bool) {
	return p.reservations.getRow(id)
}

func (p *poolTx) findAllocation(id string) (allocation.Allocation, bool) {
	return p.allocations.getRow(id)
}

// nodeOnSlot returns the node that occupies the slot now.
func (p *poolTx) nodeOnSlot(slot int) (node.Node, bool) {
	id, ok := p.occupied[slot]
	if !ok {
		return node.Node{}, false
	}
	return p.nodes.getRow(id)
}
