package sqlledger

import (
	"fmt"

	"gorm.io/gorm/clause"

	"github.com/forewarm/forewarm/ledger"
)

// rowLock keeps other verbs away from a row, but not those who only refer to it
// by foreign key: waiting for them could close a circle. SQLite's dialect drops
// it: there the transaction holds everything anyway.
var rowLock = clause.Locking{Strength: "NO KEY UPDATE"}

// Open locks and reads. What others committed while it waited is seen: each
// statement has a snapshot of its own.
func (t *tx) Open(o ledger.Opening) (ledger.Opened, error) {
	var opened ledger.Opened
	var err error
	opened.Organizations, err = locked[organizationRow](t, "organization", o.Organizations)
	if err != nil {
		return opened, err
	}
	if opened.Pools, err = locked[poolRow](t, "pool", o.Pools); err != nil {
		return opened, err
	}
	if opened.Stamps, err = t.stamps(); err != nil {
		return opened, err
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

// lockable is a row that Open can hold.
type lockable[T any] interface {
	stored[T]
	identity() head
}

// locked holds rows and returns their values in the order of their ids.
func locked[R lockable[T], T any](t *tx, kind string, ids []string) ([]T, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	doing := "locking " + kind
	var rows []R
	if err := t.query().Clauses(rowLock).Where("id IN ?", ids).Order("id").Find(&rows).Error; err != nil {
		return nil, t.spoil(wrap(doing, err))
	}
	return found[R, T](doing, ids, rows)
}

// found turns rows into values and names an id that has none.
func found[R lockable[T], T any](doing string, ids []string, rows []R) ([]T, error) {
	values, there := make([]T, len(rows)), make(map[string]bool, len(rows))
	for i, row := range rows {
		var err error
		if values[i], err = row.value(); err != nil {
			return nil, wrap(doing, err)
		}
		there[row.identity().ID] = true
	}
	for _, id := range ids {
		if !there[id] {
			return nil, fmt.Errorf("%s %s: %w", doing, id, ledger.ErrNotFound)
		}
	}
	return values, nil
}

// stamps reads those of all pools, which are few.
func (t *tx) stamps() (map[string]int64, error) {
	var rows []struct {
		ID    string `gorm:"column:id"`
		Stamp int64  `gorm:"column:stamp"`
	}
	err := t.query().Raw("SELECT id, stamp FROM pools").Scan(&rows).Error
	stamps := make(map[string]int64, len(rows))
	for _, row := range rows {
		stamps[row.ID] = row.Stamp
	}
	return stamps, wrap("reading stamps", err)
}
