package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
)

// unit is one verb at work: it collects what the verb changes, so that each row
// is written once however often it changed, and everything is saved together
// with its events and the tasks it causes.
type unit struct {
	*Ledger
	tx     Tx
	actor  Actor
	change Change
	pools  map[string]*poolUnit
	wake   []string
}

// poolUnit is a locked pool with the rows of it that changed.
type poolUnit struct {
	PoolState
	places       *calendar.Slots // see slots
	occupied     map[int]int     // slot → index of its live node; see onSlot
	dirtyPool    bool
	nodes        map[string]bool
	reservations map[string]bool
	allocations  map[string]bool
}

// do runs a verb in one transaction and saves what it changed.
func (l *Ledger) do(ctx context.Context, actor Actor, fn func(u *unit) error) error {
	return l.store.InTx(ctx, func(_ context.Context, tx Tx) error {
		u := &unit{Ledger: l, tx: tx, actor: actor, pools: map[string]*poolUnit{}}
		if err := fn(u); err != nil {
			return err
		}
		return u.commit()
	})
}

func (u *unit) now() time.Time { return u.tx.Now() }

// commit writes everything the verb changed and raises the versions of the
// copies in hand to those now stored.
func (u *unit) commit() error {
	for _, id := range sortedKeys(u.pools) {
		u.pools[id].collect(&u.change)
	}
	if err := u.tx.Save(u.change); err != nil {
		return err
	}
	for _, p := range u.pools {
		p.raise()
	}
	for _, key := range u.wake {
		if err := u.tx.Wake(key, u.now()); err != nil {
			return fmt.Errorf("waking %s: %w", key, err)
		}
	}
	return nil
}

func (p *poolUnit) collect(c *Change) {
	if p.dirtyPool {
		c.Pools = append(c.Pools, p.Pool)
	}
	for _, n := range p.Nodes {
		if p.nodes[n.ID] {
			c.Nodes = append(c.Nodes, n)
		}
	}
	for _, r := range p.Reservations {
		if p.reservations[r.ID] {
			c.Reservations = append(c.Reservations, r)
		}
	}
	for _, a := range p.Allocations {
		if p.allocations[a.ID] {
			c.Allocations = append(c.Allocations, a)
		}
	}
}

func (p *poolUnit) raise() {
	if p.dirtyPool {
		p.Pool.Version++
	}
	for i := range p.Nodes {
		if p.nodes[p.Nodes[i].ID] {
			p.Nodes[i].Version++
		}
	}
	for i := range p.Reservations {
		if p.reservations[p.Reservations[i].ID] {
			p.Reservations[i].Version++
		}
	}
	for i := range p.Allocations {
		if p.allocations[p.Allocations[i].ID] {
			p.Allocations[i].Version++
		}
	}
}

// lockPool locks a pool once per verb.
func (u *unit) lockPool(id string) (*poolUnit, error) {
	if p, ok := u.pools[id]; ok {
		return p, nil
	}
	if _, err := u.tx.Open(Opening{Pools: []string{id}}); err != nil {
		return nil, err
	}
	state, err := u.tx.PoolState(id)
	if err != nil {
		return nil, err
	}
	p := &poolUnit{PoolState: state, nodes: map[string]bool{}, reservations: map[string]bool{}, allocations: map[string]bool{}}
	u.pools[id] = p
	return p, nil
}

// lockOrganization locks an organization.
func (u *unit) lockOrganization(id string) (Organization, error) {
	opened, err := u.tx.Open(Opening{Organizations: []string{id}})
	if err != nil {
		return Organization{}, err
	}
	return opened.Organizations[0], nil
}

// wakePlan has the pool planned as soon as this transaction is there.
func (u *unit) wakePlan(poolID string) {
	if key := planKey(poolID); !slices.Contains(u.wake, key) {
		u.wake = append(u.wake, key)
	}
}

func planKey(poolID string) string { return "plan:" + poolID }

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
	u.event(Event{OrganizationID: next.OrganizationID, Type: "reservation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (u *unit) stepAllocation(p *poolUnit, a allocation.Allocation, e allocation.Event, reason, message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, u.now())
	if err != nil {
		return a, err
	}
	p.putAllocation(next)
	u.event(Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (p *poolUnit) putNode(n node.Node) {
	p.nodes[n.ID] = true
	p.Nodes = put(p.Nodes, n, func(o node.Node) bool { return o.ID == n.ID })
	p.occupied = nil
}

func (p *poolUnit) putReservation(r reservation.Reservation) {
	p.reservations[r.ID] = true
	p.Reservations = put(p.Reservations, r, func(o reservation.Reservation) bool { return o.ID == r.ID })
	p.rebook(r.Booking(), r.Placed())
}

func (p *poolUnit) putAllocation(a allocation.Allocation) {
	p.allocations[a.ID] = true
	p.Allocations = put(p.Allocations, a, func(o allocation.Allocation) bool { return o.ID == a.ID })
	p.rebook(a.Booking(), a.Live())
}

// rebook keeps the calendar in step with a booking that changed.
func (p *poolUnit) rebook(b calendar.Booking, placed bool) {
	if p.places == nil {
		return
	}
	p.places.Remove(b.ID)
	if placed {
		p.places.Force(b)
	}
}

func put[T any](rows []T, row T, same func(T) bool) []T {
	if i := slices.IndexFunc(rows, same); i >= 0 {
		rows[i] = row
		return rows
	}
	return append(rows, row)
}

func (p *poolUnit) node(id string) (node.Node, bool) {
	i := slices.IndexFunc(p.Nodes, func(n node.Node) bool { return n.ID == id })
	if i < 0 {
		return node.Node{}, false
	}
	return p.Nodes[i], true
}

func (p *poolUnit) reservation(id string) (reservation.Reservation, bool) {
	i := slices.IndexFunc(p.Reservations, func(r reservation.Reservation) bool { return r.ID == id })
	if i < 0 {
		return reservation.Reservation{}, false
	}
	return p.Reservations[i], true
}

func (p *poolUnit) allocation(id string) (allocation.Allocation, bool) {
	i := slices.IndexFunc(p.Allocations, func(a allocation.Allocation) bool { return a.ID == id })
	if i < 0 {
		return allocation.Allocation{}, false
	}
	return p.Allocations[i], true
}

// onSlot returns the node that occupies the slot now.
func (p *poolUnit) onSlot(slot int) (node.Node, bool) {
	if p.occupied == nil {
		p.occupied = make(map[int]int, len(p.Nodes))
		for i, n := range p.Nodes {
			if !node.Machine.Terminal(n.State()) {
				p.occupied[n.Slot] = i
			}
		}
	}
	i, ok := p.occupied[slot]
	if !ok {
		return node.Node{}, false
	}
	return p.Nodes[i], true
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
