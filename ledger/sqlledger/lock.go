package sqlledger

import (
	"errors"
	"fmt"

	"gorm.io/gorm/clause"

	"github.com/forewarm/forewarm/ledger"
)

// rowLock keeps other verbs away from a row, but not those who only refer to it
// by foreign key: waiting for them could close a circle. SQLite's dialect drops
// it: there the transaction holds everything anyway.
var rowLock = clause.Locking{Strength: "NO KEY UPDATE"}

// Lock locks and reads. What others committed while it waited is seen: each
// statement has a snapshot of its own.
func (t *tx) Lock(o ledger.LockRequest) (ledger.Locked, error) {
	if t.session != nil {
		return t.lockInBatch(o)
	}
	opened := ledger.Locked{Revisions: map[string]int64{}}
	var err error
	opened.Organizations, err = lockAndRead[organizationRow](t, "organization", o.Organizations)
	if err != nil {
		return opened, err
	}
	if opened.Pools, err = lockAndRead[poolRow](t, "pool", o.Pools); err != nil {
		return opened, err
	}
	var revisions []revisionRow
	if err := t.newQuery().Select("id, revision").Find(&revisions).Error; err != nil {
		return opened, wrapError("reading revisions", err)
	}
	for _, row := range revisions {
		opened.Revisions[row.ID] = row.Revision
	}
	for _, key := range o.Replays {
		replay, found, err := t.Replay(key.OrganizationID, key.Route, key.Key)
		if err != nil {
			return opened, err
		}
		if found {
			opened.Replays = append(opened.Replays, replay)
		}
	}
	return opened, nil
}

// revisionRow is as much of a pool as Open reads of all of them.
type revisionRow struct {
	ID       string `gorm:"column:id"`
	Revision int64  `gorm:"column:revision"`
}

func (revisionRow) TableName() string { return "pools" }

// lockableRow is a row that Open can hold.
type lockableRow[T any] interface {
	storedRow[T]
	versionedRow
}

// lockAndRead holds rows and returns their values in the order of their ids.
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

// requireRows turns rows into values and names an id that has none.
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

// lockInBatch is Open in one round trip. The clock is read after the last lock.
func (t *tx) lockInBatch(o ledger.LockRequest) (ledger.Locked, error) {
	opened := ledger.Locked{Revisions: map[string]int64{}}
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
	if t.now.IsZero() || len(o.Pools) > 0 { // who held a pool meanwhile was at work until a moment ago
		list = append(list, t.readClock())
	}
	list = append(list, readRevisions(opened.Revisions))
	var replays []replayRow
	if len(o.Replays) > 0 {
		list = append(list, readReplays(o.Replays, &replays))
	}
	if err := t.sendBatch(list); err != nil {
		return opened, t.failWith(err)
	}
	var err1, err2 error
	opened.Organizations, err1 = requireRows[organizationRow]("locking organization", o.Organizations, organizations)
	opened.Pools, err2 = requireRows[poolRow]("locking pool", o.Pools, pools)
	t.markHeld(opened)
	for _, row := range replays {
		replay, err := row.toValue()
		err2 = errors.Join(err2, err)
		opened.Replays = append(opened.Replays, replay)
	}
	return opened, errors.Join(err1, err2)
}

// markHeld remembers what is there for as long as the transaction is.
func (t *tx) markHeld(opened ledger.Locked) {
	if t.held == nil {
		t.held = map[string]bool{}
	}
	for _, o := range opened.Organizations {
		t.held[o.ID] = true
	}
	for _, p := range opened.Pools {
		t.held[p.ID] = true
	}
}

// lockRows holds rows in the order of their ids and reads them into rows.
func lockRows[R tableRow](what string, ids []string, rows *[]R) statement {
	return statement{
		doing: "locking " + what, text: typeOf[R]().statements.lock, args: [][]byte{textArray(ids)},
		receive: appendRows(rows),
	}
}

// readClock reads the database's time once.
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

// readRevisions reads those of all pools, which are few.
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

// readReplays reads the stored answers that there are.
func readReplays(keys []ledger.ReplayKey, rows *[]replayRow) statement {
	columns := [3][]string{}
	for _, k := range keys {
		columns[0], columns[1], columns[2] = append(columns[0], k.OrganizationID), append(columns[1], k.Route),
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
