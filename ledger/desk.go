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

// poolUnit is a locked pool in the hands of a unit.
type poolUnit struct {
	*desk
	unit    *unit
	Pool    Pool            // the row
	touched map[string]int  // id of a row that changed → which of the group changed it
	ahead   bool            // rows were written ahead of the rest
	charged map[string]bool // organizations of which the use changed
}

// touch notes that a row changes. Two of a group must not change the same row:
// it would be written once, and one version would stand for both.
func (p *poolUnit) touch(id string) {
	if by, ok := p.touched[id]; ok {
		if by != p.unit.serial {
			p.unit.clash = true
		}
		return
	}
	p.touched[id] = p.unit.serial
	p.unit.undos = append(p.unit.undos, func() { delete(p.touched, id) })
}

func (p *poolUnit) putPool(next Pool) {
	p.touch(next.ID)
	before := p.Pool
	changed := !reflect.DeepEqual(next.Pool, before.Pool)
	if changed {
		next.DefinitionVersion = before.DefinitionVersion + 1
	}
	if p.Pool = next; changed {
		p.rearrange(next.Pool)
	}
	p.unit.undos = append(p.unit.undos, func() {
		if p.Pool = before; changed {
			p.rearrange(before.Pool)
		}
	})
}

// learn changes what the pool has learned. Unlike another change of a row, several
// of a group may make it: each adds to what the one before it left, and nobody is
// answered with the row's version.
func (p *poolUnit) learn(next plan.Learned) {
	before := p.Pool.Learned
	if _, ok := p.touched[p.Pool.ID]; !ok {
		p.touch(p.Pool.ID)
	}
	p.Pool.Learned = next
	p.unit.undos = append(p.unit.undos, func() { p.Pool.Learned = before })
}

func (p *poolUnit) putNode(n node.Node) {
	p.touch(n.ID)
	before := found(p.nodes.get(n.ID))
	p.setNode(before, &n)
	p.unit.undos = append(p.unit.undos, func() { p.setNode(&n, before) })
}

func (p *poolUnit) putReservation(r reservation.Reservation) {
	p.touch(r.ID)
	before := found(p.reservations.get(r.ID))
	p.setReservation(before, &r)
	p.unit.undos = append(p.unit.undos, func() { p.setReservation(&r, before) })
}

func (p *poolUnit) putAllocation(a allocation.Allocation) {
	p.touch(a.ID)
	before := found(p.allocations.get(a.ID))
	p.setAllocation(before, &a)
	p.unit.undos = append(p.unit.undos, func() { p.setAllocation(&a, before) })
}

func found[T any](row T, ok bool) *T {
	if !ok {
		return nil
	}
	return &row
}

// collect adds the rows that changed, in the order of their ids, and a new stamp.
func (p *poolUnit) collect(c *Change) {
	if len(p.touched) == 0 && !p.ahead {
		return
	}
	p.collectRows(c)
	for _, id := range sortedKeys(p.charged) {
		c.Uses = append(c.Uses, PoolUse{PoolID: p.Pool.ID, OrganizationID: id, Usage: p.uses[id]})
	}
	if c.Revisions == nil {
		c.Revisions = map[string]int64{}
	}
	c.Revisions[p.Pool.ID] = p.board.next()
}

func (p *poolUnit) collectRows(c *Change) {
	for _, id := range sortedKeys(p.touched) {
		if n, ok := p.nodes.get(id); ok {
			c.Nodes = append(c.Nodes, n)
		} else if r, ok := p.reservations.get(id); ok {
			c.Reservations = append(c.Reservations, r)
		} else if a, ok := p.allocations.get(id); ok {
			c.Allocations = append(c.Allocations, a)
		} else {
			c.Pools = append(c.Pools, p.Pool)
		}
	}
}

// settle brings the desk to what was committed under a stamp: rows have the next
// version, and what ended leaves.
func (p *poolUnit) settle(stamp int64) {
	if len(p.touched) == 0 && !p.ahead {
		return
	}
	p.stamp, p.Pool.Revision = stamp, stamp
	p.settleRows()
	p.row, p.board.stamps[p.Pool.ID] = p.Pool, stamp
	p.board.see(p.unit.now())
}

// writeAhead takes the rows that changed so far: they are written before the
// rest, in the same transaction.
func (p *poolUnit) writeAhead(c *Change) {
	p.collectRows(c)
	p.settleRows()
	p.touched, p.ahead = map[string]int{}, true
}

func (p *poolUnit) settleRows() {
	if _, ok := p.touched[p.Pool.ID]; ok {
		p.Pool.Version++
	}
	for _, id := range sortedKeys(p.touched) {
		if i, ok := p.nodes.find(id); ok {
			p.settleNode(i)
		} else if i, ok := p.reservations.find(id); ok {
			p.settleReservation(i)
		} else if i, ok := p.allocations.find(id); ok {
			p.settleAllocation(i)
		}
	}
}

func (p *poolUnit) settleNode(i int) {
	n := *p.nodes.rows[i]
	n.Version++
	if p.nodes.rows[i] = &n; node.Machine.Terminal(n.State()) {
		p.nodes.rows = slices.Delete(p.nodes.rows, i, i+1)
	}
}

func (p *poolUnit) settleReservation(i int) {
	r := *p.reservations.rows[i]
	r.Version++
	if p.reservations.rows[i] = &r; r.Live() {
		return
	}
	p.reservations.rows = slices.Delete(p.reservations.rows, i, i+1)
	s := reservationSpend(&r)
	p.spend(Spend{OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, UserID: r.UserID, Class: r.Class,
		Day: quota.Day(r.Window.Start), Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}

func (p *poolUnit) settleAllocation(i int) {
	a := *p.allocations.rows[i]
	a.Version++
	if p.allocations.rows[i] = &a; a.Live() {
		return
	}
	p.allocations.rows = slices.Delete(p.allocations.rows, i, i+1)
	s := allocationSpend(p.def, &a)
	p.spend(Spend{OrganizationID: a.OrganizationID, MadeBy: a.HeldBy, UserID: a.UserID, Day: quota.Day(a.Window.Start),
		Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}

// stored returns the version that a row will have once the unit is committed.
func (p *poolUnit) stored(id string, version int) int {
	if p == nil {
		return version
	}
	if _, ok := p.touched[id]; ok {
		return version + 1
	}
	return version
}

func (p *poolUnit) node(id string) (node.Node, bool) { return p.nodes.get(id) }

func (p *poolUnit) reservation(id string) (reservation.Reservation, bool) {
	return p.reservations.get(id)
}

func (p *poolUnit) allocation(id string) (allocation.Allocation, bool) { return p.allocations.get(id) }

// onSlot returns the node that occupies the slot now.
func (p *poolUnit) onSlot(slot int) (node.Node, bool) {
	id, ok := p.occupied[slot]
	if !ok {
		return node.Node{}, false
	}
	return p.nodes.get(id)
}
