package sqlledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// Bounds of what is kept of a pool's changes. Whoever is further behind reads the
// pool whole, which then costs no more.
const (
	keepChanges    = 1000
	keepLarge      = 20    // of long lists, such as those of large batches; older ones go with the next
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
		t.written[u.PoolID] = append(t.written[u.PoolID], cmp.Or(u.UserID, u.OrganizationID))
	}
}

// poolChange is a new revision of a pool, and the list of what was written to reach it.
type poolChange struct {
	poolID   string
	revision int64
	written  string
}

// saveRevisions sets the revisions of pools, and lists what was written to reach
// them.
func (t *tx) saveRevisions(s changeWriter, revisions map[string]int64) {
	if len(revisions) == 0 {
		return
	}
	var changes []poolChange
	for _, poolID := range slices.Sorted(maps.Keys(revisions)) {
		changes = append(changes, poolChange{poolID, revisions[poolID], packList(t.written[poolID])})
		delete(t.written, poolID)
	}
	s.setRevisions(changes)
	for _, c := range changes {
		if c.revision%forgetInterval == 0 {
			s.execStatement("forgetting old changes of pool "+c.poolID, forgetOld, nil, c.poolID, c.poolID)
		}
		if len(c.written) > largeList {
			s.execStatement("forgetting large changes of pool "+c.poolID, forgetLarge, nil, c.poolID, c.poolID)
		}
	}
}

func (d directWriter) setRevisions(changes []poolChange) {
	for _, c := range changes {
		d.execStatement("listing what changed in pool "+c.poolID,
			"INSERT INTO pool_changes (pool_id, number, previous, revision, ids) "+
				"SELECT id, changes + 1, revision, ?, ? FROM pools WHERE id = ?", nil, c.revision, c.written, c.poolID)
		d.execStatement("setting the revision of pool "+c.poolID,
			"UPDATE pools SET revision = ?, changes = changes + 1 WHERE id = ?", ledger.ErrNotFound, c.revision, c.poolID)
	}
}

func (b *batchWriter) setRevisions(changes []poolChange) { b.sets = append(b.sets, changes...) }

// setRevisions returns the statements that list and set: one for each pool if they are few,
// since it is planned only once.
func setRevisions(changes []poolChange) []statement {
	if len(changes) > maxSingleRows {
		return []statement{setManyRevisions(changes)}
	}
	list := make([]statement, len(changes))
	for i, c := range changes {
		list[i] = statement{
			doing: "setting the revision of pool " + c.poolID, unmet: ledger.ErrNotFound, text: setRevisionText,
			args: [][]byte{[]byte(c.poolID), encodeInteger(c.revision), []byte(c.written)},
		}
	}
	return list
}

// setManyRevisions lists and sets in one statement for all pools. The pool as it was before
// the update is joined to it.
func setManyRevisions(changes []poolChange) statement {
	ids, revisions, written := make([]string, len(changes)), make([]int64, len(changes)), make([]string, len(changes))
	for i, c := range changes {
		ids[i], revisions[i], written[i] = c.poolID, c.revision, c.written
	}
	return statement{
		doing: "setting the revision of pools " + strings.Join(ids, ", "), unmet: ledger.ErrNotFound,
		text: setRevisionsText,
		args: [][]byte{textArray(ids), integerArray(revisions), textArray(written), encodeInteger(int64(len(changes)))},
	}
}

// setRevisionText lists the pool as it was when the statement began: its row is locked.
const setRevisionText = `WITH listed AS (INSERT INTO pool_changes (pool_id, number, previous, revision, ids)
			SELECT id, changes + 1, revision, $2::bigint, $3::text FROM pools WHERE id = $1),
		written AS (UPDATE pools SET revision = $2::bigint, changes = changes + 1 WHERE id = $1 RETURNING 1)
		SELECT 1 / count(*)::int FROM written`

var setRevisionsText = `WITH changed AS (UPDATE pools AS p SET revision = k.revision, changes = p.changes + 1
			FROM pools AS old JOIN unnest($1::text[], $2::bigint[], $3::text[]) AS k (id, revision, ids) ON old.id = k.id
			WHERE p.id = old.id
			RETURNING p.id, p.changes AS number, old.revision AS previous, k.revision, k.ids),
		written AS (INSERT INTO pool_changes (pool_id, number, previous, revision, ids)
			SELECT id, number, previous, revision, ids FROM changed RETURNING 1)
		` + fmt.Sprintf(condition, "$4")

// What is forgotten. Old changes are found by the key; the large ones, for which all
// are read, only when there is one more.
var (
	forgetOld = fmt.Sprintf("DELETE FROM pool_changes WHERE pool_id = ? "+
		"AND number <= (SELECT changes FROM pools WHERE id = ?) - %d", keepChanges)
	forgetLarge = fmt.Sprintf("DELETE FROM pool_changes WHERE pool_id = ? "+
		"AND number <= (SELECT changes FROM pools WHERE id = ?) - %d AND LENGTH(ids) > %d", keepLarge, largeList)
)

// PoolStateSince reads the rows that were written in a pool since it was as known
// says, in one round trip.
func (r capacityReader) PoolStateSince(known ledger.Pool) (ledger.PoolState, bool, error) {
	c := changesSince{known: known}
	list := append(c.rowQueries(r.store.dialect.written),
		queryRows("reading pool "+known.ID, &c.rows.pools, "FROM pools WHERE id = ?", known.ID))
	if err := r.readTogether(list...); err != nil {
		return ledger.PoolState{}, false, err
	}
	return c.toState()
}

// changesSince are the rows that were written in a pool since it was as known.
type changesSince struct {
	known ledger.Pool
	list  []poolChangeRow // from the change on that made it so
	rows  poolRows
}

// rowQueries returns the queries that fill in the rows, but for the pool's own.
// written selects the ids in the changes of a pool after a number.
func (c *changesSince) rowQueries(written string) []rowQuery {
	pool, number, p := c.known.ID, c.known.Changes, &c.rows
	return []rowQuery{
		queryRows("reading what changed in a pool", &c.list,
			"FROM pool_changes WHERE pool_id = ? AND number >= ? ORDER BY number", pool, number),
		queryRows("reading changed nodes", &p.nodes, "FROM nodes WHERE id "+written+" ORDER BY id", pool, number),
		queryRows("reading their devices", &p.devices,
			"FROM gpus WHERE node_id "+written+" ORDER BY node_id, idx, uuid", pool, number),
		queryRows("reading changed reservations", &p.reservations,
			"FROM reservations WHERE id "+written+" ORDER BY id", pool, number),
		queryRows("reading changed allocations", &p.allocations,
			"FROM allocations WHERE id "+written+" ORDER BY id", pool, number),
		queryRows("reading held devices", &p.holds,
			"FROM allocation_gpus WHERE allocation_id "+written+" ORDER BY allocation_id, idx", pool, number),
		queryRows("reading changed uses", &p.uses,
			"FROM usages WHERE pool_id = ? AND organization_id "+written+" ORDER BY organization_id", pool, pool, number),
		queryRows("reading changed uses of users", &p.userUses, "FROM user_usages WHERE pool_id = ? AND user_id "+written+
			" ORDER BY organization_id, user_id", pool, pool, number),
	}
}

// toState returns the pool with the rows that were written. False: the changes since
// are not all there, or the pool was never as known says: a copy of the database took
// over that lagged, or an older program wrote without listing it.
func (c *changesSince) toState() (ledger.PoolState, bool, error) {
	if !c.continues() {
		return ledger.PoolState{}, false, nil
	}
	state, err := c.rows.toState(c.known.ID)
	return state, err == nil, err
}

// continues reports whether the changes lead from the known state to the present one.
func (c *changesSince) continues() bool {
	if len(c.rows.pools) == 0 || len(c.list) == 0 {
		return false
	}
	first, last := c.list[0], c.list[len(c.list)-1]
	if first.Number != c.known.Changes || first.Revision != c.known.Revision ||
		last.Revision != c.rows.pools[0].Revision {
		return false
	}
	for i, change := range c.list[1:] {
		if change.Previous != c.list[i].Revision {
			return false
		}
	}
	return true
}
