package txn

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// poolUpdate is what was read to bring a cached pool up to date.
type poolUpdate struct {
	state ledger.PoolState
	since bool // the rows that others wrote since; otherwise all that are live
}

// readUpdate reads what others wrote in a pool. It costs what they changed, unless
// the pool is not in the cache, was defined anew, or the changes are not listed.
func readUpdate(r ledger.Reader, b *poolCache, id string) (poolUpdate, error) {
	if known := b.Pools[id]; known != nil {
		state, ok, err := r.PoolStateSince(known.Row)
		if err != nil || ok && state.Pool.DefinitionVersion == known.Row.DefinitionVersion {
			return poolUpdate{state: state, since: true}, err
		}
	}
	state, err := r.PoolState(id)
	return poolUpdate{state: state}, err
}

// applyUpdate brings the cache to what was read.
func (b *poolCache) applyUpdate(u poolUpdate) *cachedPool {
	if !u.since {
		return b.loadPool(u.state)
	}
	d := b.Pools[u.state.Pool.ID]
	d.applyChanges(u.state)
	return d
}

// knownPools are those of the pools that are in the cache, if others are known to
// write: then their changes are read together with the lock.
func (b *poolCache) knownPools(ids []string) (known []ledger.Pool) {
	if !b.trust.expectsChanges() {
		return nil
	}
	for _, id := range ids {
		if d := b.Pools[id]; d != nil {
			known = append(known, d.Row)
		}
	}
	return known
}

// refreshLocked returns a pool that is locked, as its row says it is. since is what
// the lock read of it.
func (tx *Tx) refreshLocked(p ledger.Pool, since map[string]ledger.PoolState) (*cachedPool, error) {
	d := tx.Cache.Pools[p.ID]
	if d != nil && d.Row.Revision == p.Revision {
		return d, nil
	}
	if state, ok := since[p.ID]; ok && p.DefinitionVersion == d.Row.DefinitionVersion {
		return tx.Cache.applyUpdate(poolUpdate{state: state, since: true}), nil
	}
	update, err := readUpdate(tx.Port, tx.Cache, p.ID)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	return tx.Cache.applyUpdate(update), nil
}

// refreshOthers brings the cache to what other processes changed meanwhile in pools
// that are not locked, so that what an organization holds there is counted. Nothing
// can be added to it there: that takes the organization's lock.
func (tx *Tx) refreshOthers() error {
	stale := tx.staleOthers()
	if len(stale) == 0 {
		return nil
	}
	err := tx.Port.Snapshot(func(r ledger.Reader) error {
		for _, id := range stale {
			update, err := readUpdate(r, tx.Cache, id)
			if err != nil {
				return err
			}
			tx.Cache.applyUpdate(update)
			tx.Revisions[id], tx.Cache.revisions[id] = update.state.Pool.Revision, update.state.Pool.Revision
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading other pools: %w", err)
	}
	return nil
}

// staleOthers are the pools that are not locked and not in the cache as they are.
func (tx *Tx) staleOthers() (ids []string) {
	for _, id := range SortedKeys(tx.Revisions) {
		d := tx.Cache.Pools[id]
		if _, locked := tx.Pools[id]; !locked && (d == nil || d.Row.Revision != tx.Revisions[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// applyChanges replaces the rows that others wrote, and takes out those that are over.
func (d *cachedPool) applyChanges(s ledger.PoolState) {
	d.Row = s.Pool
	for _, n := range s.Nodes {
		d.setNode(pointerIf(d.Nodes.getRow(n.ID)), &n)
		i, _ := d.Nodes.indexOf(n.ID)
		d.retireNode(i)
	}
	for _, r := range s.Reservations {
		d.SetReservation(pointerIf(d.Reservations.getRow(r.ID)), &r)
		i, _ := d.Reservations.indexOf(r.ID)
		d.retireReservation(i)
	}
	for _, a := range s.Allocations {
		d.SetAllocation(pointerIf(d.Allocations.getRow(a.ID)), &a)
		i, _ := d.Allocations.indexOf(a.ID)
		d.retireAllocation(i)
	}
	for _, use := range s.Uses {
		d.Uses[use.Account] = use.Usage
	}
	d.replaceCleaning(s.Pool.Cleaning)
	d.placeRooms(s.Pool.Rooms)
}

// retireNode takes a node's row out if the node is over.
func (d *cachedPool) retireNode(i int) {
	if node.Machine.Terminal(d.Nodes.Rows[i].State()) {
		d.Nodes.Rows = slices.Delete(d.Nodes.Rows, i, i+1)
	}
}

// retireReservation takes a reservation's row out if it is over, and keeps what it
// spent.
func (d *cachedPool) retireReservation(i int) {
	r := d.Reservations.Rows[i]
	if r.Live() {
		return
	}
	d.Reservations.Rows = slices.Delete(d.Reservations.Rows, i, i+1)
	s := ledger.ReservationSpend(r)
	d.countSpend(ledger.Spend{OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, UserID: r.UserID, Class: r.Class,
		Day: quota.Day(r.Window.Start), Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}

// retireAllocation takes an allocation's row out if it is over, and keeps what it
// spent.
func (d *cachedPool) retireAllocation(i int) {
	a := d.Allocations.Rows[i]
	if a.Live() {
		return
	}
	d.Allocations.Rows = slices.Delete(d.Allocations.Rows, i, i+1)
	if a.Observed() {
		return
	}
	s := ledger.AllocationSpend(d.Definition, a)
	d.countSpend(ledger.Spend{OrganizationID: a.OrganizationID, MadeBy: a.HeldBy, UserID: a.UserID,
		Day: quota.Day(a.Window.Start), Cost: s.Cost, GPUSeconds: s.GPUSeconds})
}
