package sqlledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// Bounds of what is kept of a pool's changes. Whoever is further behind reads the
// pool whole, which then costs no more.
const (
	keepChanges    = 1000
	keepLarge      = 20    // of those that list very much, such as large batches
	largeList      = 10000 // characters
	forgetInterval = 16    // changes of one process between deletions
)

// poolChangeRow lists the rows that one transaction wrote of what is live in a pool.
type poolChangeRow struct {
	PoolID   string `gorm:"column:pool_id;primaryKey"`
	Number   int64  `gorm:"column:number;primaryKey"`
	Previous int64  `gorm:"column:previous"`
	Revision int64  `gorm:"column:revision"`
	IDs      string `gorm:"column:ids"`
}

func (poolChangeRow) TableName() string { return "pool_changes" }

// noteWritten adds what a change writes of pools to what the transaction wrote
// before.
func (t *tx) noteWritten(c ledger.Change) {
	if t.written == nil {
		t.written = map[string][]string{}
	}
	for _, n := range c.Nodes {
		t.written[n.PoolID] = append(t.written[n.PoolID], n.ID)
	}
	for _, r := range c.Reservations {
		t.written[r.PoolID] = append(t.written[r.PoolID], r.ID)
	}
	for _, a := range c.Allocations {
		t.written[a.PoolID] = append(t.written[a.PoolID], a.ID)
	}
	for _, u := range c.Uses {
		t.written[u.PoolID] = append(t.written[u.PoolID], u.OrganizationID)
	}
}

// saveRevisions sets the revisions of pools, and lists what was written to reach
// them.
func (t *tx) saveRevisions(s changeWriter, revisions map[string]int64) {
	for _, poolID := range slices.Sorted(maps.Keys(revisions)) {
		revision, listed := revisions[poolID], packList(t.written[poolID])
		delete(t.written, poolID)
		s.execStatement("listing what changed in pool "+poolID,
			"INSERT INTO pool_changes (pool_id, number, previous, revision, ids) "+
				"SELECT id, changes + 1, revision, CAST(? AS BIGINT), CAST(? AS TEXT) FROM pools WHERE id = ?",
			nil, revision, listed, poolID)
		s.execStatement("setting the revision of pool "+poolID,
			"UPDATE pools SET revision = ?, changes = changes + 1 WHERE id = ?", ledger.ErrNotFound, revision, poolID)
		if revision%forgetInterval == 0 {
			s.execStatement("forgetting old changes of pool "+poolID, forgetChanges, nil, poolID, poolID, poolID)
		}
	}
}

var forgetChanges = fmt.Sprintf(`DELETE FROM pool_changes WHERE pool_id = ?
	AND (number <= (SELECT changes FROM pools WHERE id = ?) - %d
	OR number <= (SELECT changes FROM pools WHERE id = ?) - %d AND LENGTH(ids) > %d)`,
	keepChanges, keepLarge, largeList)

// PoolStateSince reads the rows that were written in a pool since it was as known
// says. Within a transaction on PostgreSQL that is two round trips.
func (r capacityReader) PoolStateSince(known ledger.Pool) (ledger.PoolState, bool, error) {
	var rows poolRows
	var changes []poolChangeRow
	if err := r.readTogether(
		queryRows("reading pool "+known.ID, &rows.pools, "FROM pools WHERE id = ?", known.ID),
		queryRows("reading what changed in a pool", &changes,
			"FROM pool_changes WHERE pool_id = ? AND number >= ? ORDER BY number", known.ID, known.Changes),
	); err != nil {
		return ledger.PoolState{}, false, err
	}
	ids, ok := listChanged(known, rows.pools, changes)
	if !ok {
		return ledger.PoolState{}, false, nil
	}
	if err := r.readTogether(rows.changedQueries(known.ID, ids, r.store.dialect.elements)...); err != nil {
		return ledger.PoolState{}, false, err
	}
	state, err := rows.toState(known.ID)
	return state, err == nil, err
}

// listChanged returns the ids of the rows that were written between two states of a
// pool. False: the changes in between are not all there, or the pool was never as
// known says: a copy of the database took over that lagged, or an older program wrote
// without listing it.
func listChanged(known ledger.Pool, now []poolRow, changes []poolChangeRow) ([]string, bool) {
	if len(now) == 0 || len(changes) == 0 {
		return nil, false
	}
	first, last := changes[0], changes[len(changes)-1]
	if first.Number != known.Changes || first.Revision != known.Revision || last.Revision != now[0].Revision {
		return nil, false
	}
	var ids []string
	for i, change := range changes[1:] {
		if change.Previous != changes[i].Revision {
			return nil, false
		}
		some, err := unpackList[string]("ids", change.IDs)
		if err != nil {
			return nil, false
		}
		ids = append(ids, some...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), true
}

// changedQueries returns the queries that fill in the rows that have one of the
// ids. elements selects them from a JSON list.
func (p *poolRows) changedQueries(id string, ids []string, elements string) []rowQuery {
	list, in := packList(ids), " IN ("+elements+") "
	return []rowQuery{
		queryRows("reading changed nodes", &p.nodes, "FROM nodes WHERE id"+in+"ORDER BY id", list),
		queryRows("reading their devices", &p.devices,
			"FROM gpus WHERE node_id"+in+"ORDER BY node_id, idx, uuid", list),
		queryRows("reading changed reservations", &p.reservations,
			"FROM reservations WHERE id"+in+"ORDER BY id", list),
		queryRows("reading changed allocations", &p.allocations, "FROM allocations WHERE id"+in+"ORDER BY id", list),
		queryRows("reading held devices", &p.holds,
			"FROM allocation_gpus WHERE allocation_id"+in+"ORDER BY allocation_id, idx", list),
		queryRows("reading changed uses", &p.uses,
			"FROM usages WHERE pool_id = ? AND organization_id"+in+"ORDER BY organization_id", id, list),
	}
}
