package sqlledger

import (
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/forewarm/forewarm/ledger"
)

// rowLock keeps other verbs away from a row, but not those that only refer to it by
// a foreign key: waiting for them could close a circle. SQLite's dialect drops it,
// since there the transaction holds everything anyway.
var rowLock = clause.Locking{Strength: "NO KEY UPDATE"}

// Lock locks rows and reads them. Each statement has a snapshot of its own, so what
// others committed while it waited is seen.
func (t *tx) Lock(o ledger.LockRequest) (ledger.Locked, error) {
	if t.session != nil {
		return t.lockInBatch(o)
	}
	locked := ledger.Locked{Revisions: map[string]int64{}, Since: map[string]ledger.PoolState{}}
	var err error
	locked.Organizations, err = lockAndRead[organizationRow](t, "organization", o.Organizations)
	if err != nil {
		return locked, err
	}
	if locked.Pools, err = lockAndRead[poolRow](t, "pool", o.Pools); err != nil {
		return locked, err
	}
	var revisions []revisionRow
	if err := t.newQuery().Select("id, revision").Find(&revisions).Error; err != nil {
		return locked, wrapError("reading revisions", err)
	}
	for _, row := range revisions {
		locked.Revisions[row.ID] = row.Revision
	}
	for _, known := range o.Known {
		state, ok, err := t.PoolStateSince(known)
		if err != nil {
			return locked, err
		}
		if ok {
			locked.Since[known.ID] = state
		}
	}
	for _, key := range o.Replays {
		replay, found, err := t.Replay(key.Owner, key.Route, key.Key)
		if err != nil {
			return locked, err
		}
		if found {
			locked.Replays = append(locked.Replays, replay)
		}
	}
	return locked, nil
}

// revisionRow is the part of a pool that Lock reads of all pools.
type revisionRow struct {
	ID       string `gorm:"column:id"`
	Revision int64  `gorm:"column:revision"`
}

func (revisionRow) TableName() string { return "pools" }

// lockableRow is a row that Lock can hold.
type lockableRow[T any] interface {
	storedRow[T]
	versionedRow
}

// lockAndRead locks rows and returns their values in the order of their ids.
func lockAndRead[R lockableRow[T], T any](t *tx, what string, ids []string) ([]T, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	doing := "locking " + what
	var rows []R
	if err := t.newQuery().Clauses(rowLock).Where("id IN ?", ids).Order("id").Find(&rows).Error; err != nil {
		return nil, t.failWith(wrapError(doing, err))
	}
	return requireRows[R, T](doing, ids, rows)
}

// requireRows returns the values of rows, and names an id that has no row.
func requireRows[R lockableRow[T], T any](doing string, ids []string, rows []R) ([]T, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := rowValues(rows)
	if err != nil {
		return nil, wrapError(doing, err)
	}
	there := make(map[string]bool, len(rows))
	for _, row := range rows {
		there[row.rowHead().ID] = true
	}
	for _, id := range ids {
		if !there[id] {
			return nil, fmt.Errorf("%s %s: %w", doing, id, ledger.ErrNotFound)
		}
	}
	return list, nil
}

// lockInBatch is Lock in one round trip. It reads the clock after the last lock.
func (t *tx) lockInBatch(o ledger.LockRequest) (ledger.Locked, error) {
	locked := ledger.Locked{Revisions: map[string]int64{}, Since: map[string]ledger.PoolState{}}
	var organizations []organizationRow
	var pools []poolRow
	var list []statement
	if o.Patience > 0 {
		list = append(list, setLockTimeout(o.Patience))
	}
	if len(o.Organizations) > 0 {
		list = append(list, lockRows("organizations", o.Organizations, &organizations))
	}
	if len(o.Pools) > 0 {
		list = append(list, lockRows("pools", o.Pools, &pools))
	}
	if t.now.IsZero() || len(o.Pools) > 0 { // whoever held a pool was at work until a moment ago
		list = append(list, t.readClock())
	}
	list = append(list, readRevisions(locked.Revisions))
	since := make([]changesSince, len(o.Known))
	for i, known := range o.Known {
		since[i].known = known
		for _, q := range since[i].rowQueries(t.store.dialect.written) {
			list = append(list, q.toStatement())
		}
	}
	var replays []replayRow
	if len(o.Replays) > 0 {
		list = append(list, readReplays(o.Replays, &replays))
	}
	if err := t.sendBatch(list); err != nil {
		return locked, t.failWith(err)
	}
	var err1, err2 error
	locked.Organizations, err1 = requireRows[organizationRow]("locking organization", o.Organizations, organizations)
	locked.Pools, err2 = requireRows[poolRow]("locking pool", o.Pools, pools)
	t.markHeld(locked)
	for _, row := range replays {
		replay, err := row.toValue()
		err2 = errors.Join(err2, err)
		locked.Replays = append(locked.Replays, replay)
	}
	for _, c := range since {
		c.rows.pools = slices.DeleteFunc(slices.Clone(pools), func(p poolRow) bool { return p.Head.ID != c.known.ID })
		state, ok, err := c.toState()
		if err2 = errors.Join(err2, err); ok {
			locked.Since[c.known.ID] = state
		}
	}
	return locked, errors.Join(err1, err2)
}

// markHeld remembers which rows the transaction holds.
func (t *tx) markHeld(locked ledger.Locked) {
	if t.held == nil {
		t.held = map[string]bool{}
	}
	for _, o := range locked.Organizations {
		t.held[o.ID] = true
	}
	for _, p := range locked.Pools {
		t.held[p.ID] = true
	}
}

// lockRows locks rows in the order of their ids, and reads them into rows.
func lockRows[R tableRow](what string, ids []string, rows *[]R) statement {
	return statement{
		doing: "locking " + what, text: typeOf[R]().statements.lock, args: [][]byte{textArray(ids)},
		receive: appendRows(rows),
	}
}

// readClock reads the database's time.
func (t *tx) readClock() statement {
	return statement{
		doing: "asking the database for the time", text: t.store.dialect.now, args: [][]byte{},
		receive: func(values [][]byte) error {
			now, err := decodeInteger(values[0])
			t.now = toTime(now)
			t.store.dbTime.setTime(t.now, t.store.clock.Now())
			return err
		},
	}
}

// readRevisions reads the revisions of all pools, which are few.
func readRevisions(to map[string]int64) statement {
	return statement{
		doing: "reading revisions", text: "SELECT id, revision FROM pools", args: [][]byte{},
		receive: func(values [][]byte) error {
			revision, err := decodeInteger(values[1])
			to[string(values[0])] = revision
			return err
		},
	}
}

// readReplays reads those of the stored answers that exist.
func readReplays(keys []ledger.ReplayKey, rows *[]replayRow) statement {
	columns := [3][]string{}
	for _, k := range keys {
		columns[0], columns[1], columns[2] = append(columns[0], k.Owner), append(columns[1], k.Route),
			append(columns[2], k.Key)
	}
	return statement{
		doing: "reading stored answers", receive: appendRows(rows),
		text: "SELECT " + typeOf[replayRow]().columnList("i.%s") + ` FROM unnest($1::text[], $2::text[], $3::text[])
			WITH ORDINALITY AS k (organization_id, route, key, place)
			JOIN idempotency AS i ON i.organization_id = k.organization_id AND i.route = k.route AND i.key = k.key
			ORDER BY k.place`,
		args: [][]byte{textArray(columns[0]), textArray(columns[1]), textArray(columns[2])},
	}
}
