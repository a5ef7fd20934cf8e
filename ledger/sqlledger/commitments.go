package sqlledger

import (
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// placedStates is reservation.Placed in SQL.
const placedStates = "state IN ('booked', 'warming', 'ready')"

// inAnyPool holds for every booking. It leads the database to the indexes of live
// rows and of ended rows, which begin with the pool. An index that begins with the
// organization would cost something with every new row.
const inAnyPool = "pool_id IN (SELECT id FROM pools)"

const dayMicros = int64(24 * time.Hour / time.Microsecond)

// Commitments adds up the rows themselves: a counter kept beside them would one day
// differ.
func (r bookingReader) Commitments(organizationID string) (ledger.Commitments, error) {
	var c ledger.Commitments
	var rows committedRows
	if err := r.readTogether(rows.rowQueries(organizationID, r.monthStart())...); err != nil {
		return c, err
	}
	return c, rows.addUp(&c)
}

// committedRows are the rows behind an organization's commitments.
type committedRows struct {
	pools          []poolRow
	reservations   []reservationRow
	allocations    []allocationRow
	reserved, held []spentRow
}

// rowQueries returns the queries that fill in the rows. Spending counts from month
// on.
func (c *committedRows) rowQueries(organizationID string, month int64) []rowQuery {
	return []rowQuery{
		queryRows("reading pools", &c.pools, "FROM pools ORDER BY id"),
		queryRows("adding up reservations", &c.reservations,
			"FROM reservations WHERE organization_id = ? AND "+inAnyPool+" AND "+
				liveReservation+" AND "+placedStates, organizationID),
		queryRows("adding up allocations", &c.allocations,
			"FROM allocations WHERE organization_id = ? AND "+inAnyPool+" AND "+
				liveAllocation, organizationID),
		queryRows("adding up what reservations spent", &c.reserved, reservedOfTenant, organizationID, month, month),
		queryRows("adding up what allocations spent", &c.held, heldOfTenant, organizationID, month, month),
	}
}

func (c *committedRows) addUp(to *ledger.Commitments) error {
	pools := map[string]ledger.Pool{}
	all, err := rowValues(c.pools)
	if err != nil {
		return wrapError("reading pools", err)
	}
	for _, p := range all {
		pools[p.ID] = p
	}
	reservations, err := rowValues(c.reservations)
	if err != nil {
		return wrapError("adding up reservations", err)
	}
	for i := range reservations {
		to.Reservation(pools[reservations[i].PoolID].Pool, &reservations[i], false)
	}
	allocations, err := rowValues(c.allocations)
	if err != nil {
		return wrapError("adding up allocations", err)
	}
	for i := range allocations {
		to.Allocation(pools[allocations[i].PoolID].Pool, &allocations[i], false)
	}
	for _, row := range append(c.reserved, c.held...) {
		to.Spend(row.toSpend(pools[row.PoolID]))
	}
	return nil
}
