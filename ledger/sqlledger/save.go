package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// batch is how many rows one INSERT takes.
const batch = 500

// Save writes a change, parents before children, and what ends before what
// begins, so that a slot or a GPU can change hands within one change.
func (t *tx) Save(c ledger.Change) error {
	nodes := slices.Clone(c.Nodes)
	slices.SortStableFunc(nodes, func(a, b node.Node) int {
		return endedFirst(node.Machine.Terminal(a.State()), node.Machine.Terminal(b.State()))
	})
	allocations := slices.Clone(c.Allocations)
	slices.SortStableFunc(allocations, func(a, b allocation.Allocation) int { return endedFirst(!a.Live(), !b.Live()) })
	err := errors.Join( // evaluated in order; after a failure the rest does nothing
		each(t, c.Organizations, versioned(t, "organization", organizationToRow)),
		each(t, c.Users, versioned(t, "user", userToRow)),
		each(t, c.Keys, versioned(t, "key", keyToRow)),
		each(t, c.Pools, versioned(t, "pool", poolToRow)),
		each(t, nodes, versioned(t, "node", nodeToRow)),
		each(t, nodes, t.saveDevices),
		each(t, c.Reservations, versioned(t, "reservation", reservationToRow)),
		each(t, allocations, versioned(t, "allocation", allocationToRow)),
		each(t, allocations, t.saveHolds),
		each(t, c.Schedules, versioned(t, "schedule", scheduleToRow)),
		each(t, c.Tasks, t.saveTask),
		each(t, c.Replays, t.saveReplay),
		each(t, c.Plans, versioned(t, "plan", planToRow)),
		each(t, c.Pauses, t.savePause),
		t.saveEvents(c.Events),
		each(t, slices.Sorted(maps.Keys(c.Stamps)), func(poolID string) error { return t.saveStamp(poolID, c.Stamps[poolID]) }),
		each(t, slices.Sorted(slices.Values(c.Wake)), func(key string) error { return t.Wake(key, t.Now()) }),
	)
	if err == nil && c.Last && t.joined == 0 {
		return t.commit()
	}
	return err
}

// saveStamp sets a pool's stamp; the version of its row is another matter.
func (t *tx) saveStamp(poolID string, stamp int64) error {
	doing := "stamping pool " + poolID
	n, err := t.exec(doing, "UPDATE pools SET stamp = ? WHERE id = ?", stamp, poolID)
	if err == nil && n != 1 {
		return wrap(doing, ledger.ErrNotFound)
	}
	return err
}

func endedFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// each saves items until the transaction is spoiled.
func each[T any](t *tx, items []T, save func(T) error) error {
	for _, item := range items {
		if t.err != nil {
			return nil
		}
		if err := save(item); err != nil {
			return t.spoil(err)
		}
	}
	return nil
}

// versionedRow is a row that may only be written over the version it was read at.
type versionedRow interface {
	TableName() string
	identity() head
}

func versioned[T any, R versionedRow](t *tx, kind string, toRow func(T) R) func(T) error {
	return func(item T) error {
		row := toRow(item)
		doing := "saving " + kind + " " + row.identity().ID
		if row.identity().Version == 1 {
			return t.insert(doing, &row)
		}
		return t.update(doing, row)
	}
}

func (t *tx) insert(doing string, rows any, clauses ...clause.Expression) error {
	t.writes++
	return wrap(doing, t.query().Clauses(clauses...).CreateInBatches(rows, batch).Error)
}

// update writes every column of a row over the version before.
func (t *tx) update(doing string, row versionedRow) error {
	t.writes++
	values, err := columns(row)
	if err != nil {
		return wrap(doing, err)
	}
	id := row.identity()
	delete(values, "id")
	delete(values, "stamp")
	result := t.query().Table(row.TableName()).Where("id = ? AND version = ?", id.ID, id.Version-1).Updates(values)
	if result.Error != nil {
		return wrap(doing, result.Error)
	}
	if result.RowsAffected != 1 {
		return wrap(doing, ledger.ErrConflict)
	}
	return nil
}

var schemas sync.Map // gorm's cache of what it learned of the row types

// columns returns a row's values by column, zero ones included: an update from a
// struct would leave those out.
func columns(row any) (map[string]any, error) {
	parsed, err := schema.Parse(row, &schemas, schema.NamingStrategy{})
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %T: %w", row, err)
	}
	values := make(map[string]any, len(parsed.Fields))
	for _, field := range parsed.Fields {
		values[field.DBName], _ = field.ValueOf(context.Background(), reflect.ValueOf(row))
	}
	return values, nil
}

// saveDevices replaces a node's devices when they are known and changed.
func (t *tx) saveDevices(n node.Node) error {
	doing := "saving the devices of node " + n.ID
	if len(n.Devices) == 0 {
		return nil
	}
	rows := make([]gpuRow, len(n.Devices))
	for i, d := range n.Devices {
		rows[i] = gpuRow{NodeID: n.ID, UUID: d.UUID, Index: d.Index, Model: d.Model, MemoryMiB: d.MemoryMiB}
	}
	var have []gpuRow
	if err := t.query().Where("node_id = ?", n.ID).Order("idx, uuid").Find(&have).Error; err != nil {
		return wrap(doing, err)
	}
	if slices.Equal(have, rows) {
		return nil
	}
	if _, err := t.exec(doing, "DELETE FROM gpus WHERE node_id = ?", n.ID); err != nil {
		return err
	}
	return t.insert(doing, &rows)
}

// saveHolds records what an allocation holds, and that it holds it no more.
func (t *tx) saveHolds(a allocation.Allocation) error {
	doing := "saving what allocation " + a.ID + " holds"
	if len(a.Devices) == 0 {
		return nil
	}
	var until *int64
	if !a.Live() {
		ended := micros(a.EndedAt)
		until = &ended
		_, err := t.exec(doing, "UPDATE allocation_gpus SET until = ? WHERE allocation_id = ? AND until IS NULL", ended, a.ID)
		if err != nil {
			return err
		}
	}
	rows := make([]holdRow, len(a.Devices))
	for i, d := range a.Devices {
		rows[i] = holdRow{AllocationID: a.ID, NodeID: d.NodeID, UUID: d.UUID, Index: i, Since: micros(a.ActiveAt), Until: until}
	}
	// Only the allocation's own rows may be there already: for a GPU in other
	// hands the constraint must fail.
	return t.insert(doing, &rows, clause.OnConflict{
		Columns: []clause.Column{{Name: "allocation_id"}, {Name: "gpu_uuid"}}, DoNothing: true,
	})
}

// saveTask adds a task; one with a key that exists is left alone.
func (t *tx) saveTask(task ledger.Task) error {
	row := taskToRow(task)
	doing := "adding task " + task.ID
	if task.Key == "" {
		return t.insert(doing, &row)
	}
	return t.insert(doing, &row, clause.OnConflict{
		Columns:     []clause.Column{{Name: "key"}},
		TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "key <> ''"}}},
		DoNothing:   true,
	})
}

func (t *tx) saveReplay(r ledger.Replay) error {
	row := replayToRow(r)
	return t.insert("storing an answer", &row)
}

func (t *tx) saveEvents(events []ledger.Event) error {
	if len(events) == 0 || t.err != nil {
		return nil
	}
	rows := make([]eventRow, len(events))
	for i, e := range events {
		rows[i] = eventToRow(e)
	}
	if err := t.insert("adding events", &rows); err != nil {
		return t.spoil(err)
	}
	return nil
}
