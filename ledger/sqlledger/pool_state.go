package sqlledger

import (
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// PoolState reads what is live in a pool, and what its ended bookings have spent.
// Within a transaction on PostgreSQL that is one round trip, or two if the time has
// not been read before.
func (r capacityReader) PoolState(id string) (ledger.PoolState, error) {
	var rows poolRows
	if err := r.readTogether(append(rows.liveQueries(id), rows.spentQueries(id, r.monthStart())...)...); err != nil {
		return ledger.PoolState{}, err
	}
	return rows.toState(id)
}

// poolRows are the rows behind the state of a pool.
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
	userUses     []userUsageRow
}

// liveQueries returns the queries that fill in the rows of what is live.
func (p *poolRows) liveQueries(id string) []rowQuery {
	return []rowQuery{
		queryRows("reading pool "+id, &p.pools, "FROM pools WHERE id = ?", id),
		queryRows("reading live nodes", &p.nodes, "FROM nodes WHERE pool_id = ? AND "+liveNode+" ORDER BY id", id),
		queryRows("reading live devices", &p.devices,
			"FROM gpus WHERE node_id IN (SELECT id FROM nodes WHERE pool_id = ? AND "+
				liveNode+") ORDER BY node_id, idx, uuid", id),
		queryRows("reading live reservations", &p.reservations,
			"FROM reservations WHERE pool_id = ? AND "+liveReservation+" ORDER BY id", id),
		queryRows("reading live allocations", &p.allocations,
			"FROM allocations WHERE pool_id = ? AND "+liveAllocation+" ORDER BY id", id),
		queryRows("reading held devices", &p.holds,
			"FROM allocation_gpus WHERE allocation_id IN (SELECT id FROM allocations WHERE pool_id = ? AND "+
				liveAllocation+") ORDER BY allocation_id, idx", id),
		queryRows("reading what was used", &p.uses, "FROM usages WHERE pool_id = ? ORDER BY organization_id", id),
		queryRows("reading what users used", &p.userUses,
			"FROM user_usages WHERE pool_id = ? ORDER BY organization_id, user_id", id),
	}
}

// spentQueries returns the queries that add up what is over, from month on. They read
// every row of it.
func (p *poolRows) spentQueries(id string, month int64) []rowQuery {
	return []rowQuery{
		queryRows("adding up what reservations spent", &p.reserved, spentOnReservations, id, month, month),
		queryRows("adding up what allocations spent", &p.held, spentOnAllocations, id, month, month),
	}
}

// toState returns the state that the rows describe.
func (p *poolRows) toState(id string) (ledger.PoolState, error) {
	var state ledger.PoolState
	pools, err := requireRows[poolRow]("reading pool", []string{id}, p.pools)
	if err != nil {
		return state, err
	}
	state.Pool = pools[0]
	if state.Nodes, err = rowValues(p.nodes); err != nil {
		return state, wrapError("reading live nodes", err)
	}
	if state.Reservations, err = rowValues(p.reservations); err != nil {
		return state, wrapError("reading live reservations", err)
	}
	if state.Allocations, err = rowValues(p.allocations); err != nil {
		return state, wrapError("reading live allocations", err)
	}
	state.Nodes = attachDevices(state.Nodes, p.devices)
	state.Allocations = attachHeldDevices(state.Allocations, p.holds)
	for _, row := range append(p.reserved, p.held...) {
		state.Spent = append(state.Spent, row.toSpend(state.Pool))
	}
	if len(p.uses)+len(p.userUses) > 0 {
		state.Uses, err = p.toUses()
	}
	return state, wrapError("reading what was used", err)
}

// toUses are the uses of organizations and of users, in the order of holders.
func (p *poolRows) toUses() ([]ledger.PoolUse, error) {
	organizations, err := rowValues(p.uses)
	if err != nil {
		return nil, err
	}
	users, err := rowValues(p.userUses)
	all := append(organizations, users...)
	slices.SortFunc(all, func(a, b ledger.PoolUse) int { return ledger.CompareAccounts(a.Account, b.Account) })
	return all, err
}
