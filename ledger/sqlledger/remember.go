package sqlledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// memory holds the live rows of pools as they were last read from SQLite, where
// turning thousands of rows into values costs a verb more than all else it does
// (BenchmarkLockPool: 34 ms for 2000 rows, and 5 ms with it).
//
// It cannot go stale: rows are asked for their versions every time, and the
// content of a committed version never changes. Only what was read before a
// transaction wrote anything is remembered, because a version that is rolled
// back comes again with another content. PostgreSQL is left out: after a
// failover to a replica that lagged, that could happen to committed ones too.
type memory struct {
	mu    sync.Mutex
	pools map[string]lives
}

// lives are the live rows of one pool by id and version. They are never changed
// once they are in memory.
type lives struct {
	nodes        map[string]node.Node
	reservations map[string]reservation.Reservation
	allocations  map[string]allocation.Allocation
}

func (m *memory) recall(poolID string) lives {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pools[poolID]
}

func (m *memory) keep(poolID string, l lives) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pools == nil {
		m.pools = map[string]lives{}
	}
	m.pools[poolID] = l
}

// recalled is around with the help of what is remembered.
func (r *reader) recalled(pool ledger.Pool) (ledger.PoolState, error) {
	state, known := ledger.PoolState{Pool: pool}, r.store.memory.recall(pool.ID)
	var err error
	state.Nodes, known.nodes, err = recall(r, "nodes", liveNode, pool.ID, known.nodes, r.nodesByID)
	if err != nil {
		return state, err
	}
	state.Reservations, known.reservations, err = recall(
		r, "reservations", liveReservation, pool.ID, known.reservations, r.reservationsByID)
	if err != nil {
		return state, err
	}
	state.Allocations, known.allocations, err = recall(
		r, "allocations", liveAllocation, pool.ID, known.allocations, r.allocationsByID)
	if err == nil && r.writes == 0 {
		r.store.memory.keep(pool.ID, known)
	}
	return own(state), err
}

// own gives the caller lists of its own, as a query would.
func own(s ledger.PoolState) ledger.PoolState {
	for i := range s.Nodes {
		s.Nodes[i].Devices = slices.Clone(s.Nodes[i].Devices)
	}
	for i := range s.Reservations {
		s.Reservations[i].Slots = slices.Clone(s.Reservations[i].Slots)
	}
	for i := range s.Allocations {
		a := &s.Allocations[i]
		a.Slots, a.Devices, a.Reservations = slices.Clone(a.Slots), slices.Clone(a.Devices), slices.Clone(a.Reservations)
	}
	return s
}

// recall returns the rows of a pool for which a condition holds, in order of
// their ids, and all of them as known for the next time. Only rows whose version
// is not known are read.
func recall[T any](
	r *reader, table, condition, poolID string, known map[string]T, read func(ids []string) (map[string]T, error),
) ([]T, map[string]T, error) {
	var packed string // one value is much faster to scan than as many rows
	err := r.query().Raw(
		"SELECT COALESCE(group_concat(id || ' ' || version, char(10)), '') FROM "+table+" WHERE pool_id = ? AND "+condition, poolID).
		Scan(&packed).Error
	if err != nil {
		return nil, nil, wrap("reading versions of "+table, err)
	}
	versions := strings.FieldsFunc(packed, func(c rune) bool { return c == '\n' })
	slices.Sort(versions)
	var unknown []string
	for _, version := range versions {
		if _, ok := known[version]; !ok {
			id, _, _ := strings.Cut(version, " ")
			unknown = append(unknown, id)
		}
	}
	fresh := map[string]T{}
	for ids := range slices.Chunk(unknown, batch) {
		some, err := read(ids)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(fresh, some)
	}
	list, now := make([]T, len(versions)), make(map[string]T, len(versions))
	for i, version := range versions {
		row, ok := known[version]
		if !ok {
			row = fresh[version]
		}
		list[i], now[version] = row, row
	}
	return list, now, nil
}

func (r *reader) nodesByID(ids []string) (map[string]node.Node, error) {
	nodes, err := list[nodeRow](r.query().Where("id IN ?", ids), "reading live nodes")
	if err != nil {
		return nil, err
	}
	nodes, err = r.equipped(nodes)
	return byVersion(nodes, func(n node.Node) head { return head{n.ID, n.Version} }), err
}

func (r *reader) reservationsByID(ids []string) (map[string]reservation.Reservation, error) {
	reservations, err := list[reservationRow](r.query().Where("id IN ?", ids), "reading live reservations")
	return byVersion(reservations, func(r reservation.Reservation) head { return head{r.ID, r.Version} }), err
}

func (r *reader) allocationsByID(ids []string) (map[string]allocation.Allocation, error) {
	allocations, err := list[allocationRow](r.query().Where("id IN ?", ids), "reading live allocations")
	if err != nil {
		return nil, err
	}
	allocations, err = r.handed(allocations)
	return byVersion(allocations, func(a allocation.Allocation) head { return head{a.ID, a.Version} }), err
}

func byVersion[T any](rows []T, identity func(T) head) map[string]T {
	all := make(map[string]T, len(rows))
	for _, row := range rows {
		h := identity(row)
		all[h.ID+" "+strconv.Itoa(h.Version)] = row
	}
	return all
}
