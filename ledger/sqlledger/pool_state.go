package sqlledger

import (
	"github.com/forewarm/forewarm/ledger"
)

// PoolState reads what is live in a pool and what the rest has spent. Within a
// transaction on PostgreSQL that is one round trip, or two if the time was not
// read before.
func (r *reader) PoolState(id string) (ledger.PoolState, error) {
	var rows poolRows
	if err := r.gather(rows.reads(id, r.month())...); err != nil {
		return ledger.PoolState{}, err
	}
	return rows.state(id)
}

// poolRows are a pool's rows as they are stored.
type poolRows struct {
	pools        []poolRow
	nodes        []nodeRow
	devices      []gpuRow
	reservations []reservationRow
	allocations  []allocationRow
	holds        []holdRow
	reserved     []spentRow
	held         []spentRow
	uses         []usageRow
}

// reads fills in the rows. month is when what is spent begins to count.
func (p *poolRows) reads(id string, month int64) []reading {
	return []reading{
		readRows("reading pool "+id, &p.pools, "FROM pools WHERE id = ?", id),
		readRows("reading live nodes", &p.nodes, "FROM nodes WHERE pool_id = ? AND "+liveNode+" ORDER BY id", id),
		readRows("reading live devices", &p.devices,
			"FROM gpus WHERE node_id IN (SELECT id FROM nodes WHERE pool_id = ? AND "+
				liveNode+") ORDER BY node_id, idx, uuid", id),
		readRows("reading live reservations", &p.reservations,
			"FROM reservations WHERE pool_id = ? AND "+liveReservation+" ORDER BY id", id),
		readRows("reading live allocations", &p.allocations,
			"FROM allocations WHERE pool_id = ? AND "+liveAllocation+" ORDER BY id", id),
		readRows("reading held devices", &p.holds,
			"FROM allocation_gpus WHERE allocation_id IN (SELECT id FROM allocations WHERE pool_id = ? AND "+
				liveAllocation+") ORDER BY allocation_id, idx", id),
		readRows("adding up what reservations spent", &p.reserved, spentOnReservations, id, month, month),
		readRows("adding up what allocations spent", &p.held, spentOnAllocations, id, month, month),
		readRows("reading what was used", &p.uses, "FROM usages WHERE pool_id = ? ORDER BY organization_id", id),
	}
}

// state turns the rows into values.
func (p *poolRows) state(id string) (ledger.PoolState, error) {
	var state ledger.PoolState
	pools, err := found[poolRow]("reading pool", []string{id}, p.pools)
	if err != nil {
		return state, err
	}
	state.Pool = pools[0]
	if state.Nodes, err = values(p.nodes); err != nil {
		return state, wrap("reading live nodes", err)
	}
	if state.Reservations, err = values(p.reservations); err != nil {
		return state, wrap("reading live reservations", err)
	}
	if state.Allocations, err = values(p.allocations); err != nil {
		return state, wrap("reading live allocations", err)
	}
	state.Nodes, state.Allocations = equip(state.Nodes, p.devices), hand(state.Allocations, p.holds)
	for _, row := range append(p.reserved, p.held...) {
		state.Spent = append(state.Spent, row.value(state.Pool))
	}
	if len(p.uses) > 0 {
		state.Uses, err = values(p.uses)
	}
	return state, wrap("reading what was used", err)
}
