package sqlledger

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
	"github.com/forewarm/forewarm/ledger"
)

// liveStates remembers pools as they were read last, for those who only look: a pool
// may have many thousand live rows, of which few have changed since. A state that is
// remembered is never changed.
type liveStates struct {
	mu    sync.Mutex
	pools map[string]ledger.PoolState // by id
}

func (l *liveStates) find(id string) (ledger.PoolState, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, ok := l.pools[id]
	return state, ok
}

// keepNewer remembers a state, unless a later one is.
func (l *liveStates) keepNewer(s ledger.PoolState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools == nil {
		l.pools = map[string]ledger.PoolState{}
	}
	if before, ok := l.pools[s.Pool.ID]; !ok || before.Pool.Changes <= s.Pool.Changes {
		l.pools[s.Pool.ID] = s
	}
}

// LiveState reads the pool's row, and then what was written in the pool since it was
// read last.
func (r capacityReader) LiveState(id string) (ledger.PoolState, error) {
	pool, err := readRow[poolRow](r.newQuery().Where("id = ?", id), "reading pool "+id)
	if err != nil {
		return ledger.PoolState{}, err
	}
	state, ok := r.store.live.find(id)
	switch {
	case ok && reflect.DeepEqual(state.Pool, pool):
		return state, nil
	case ok && state.Pool.Revision == pool.Revision: // only the row has changed
	case ok:
		if ok, err = r.bringUpToDate(&state); err != nil {
			return ledger.PoolState{}, err
		}
	}
	if !ok {
		var rows poolRows
		if err := r.readTogether(rows.liveQueries(id)...); err != nil {
			return ledger.PoolState{}, err
		}
		if state, err = rows.toState(id); err != nil {
			return ledger.PoolState{}, err
		}
	}
	state.Pool = pool
	state = state.Shared()
	r.store.live.keepNewer(state)
	return state, nil
}

// bringUpToDate adds to a state what was written since. False: that cannot be told.
func (r capacityReader) bringUpToDate(state *ledger.PoolState) (bool, error) {
	since, ok, err := r.PoolStateSince(state.Pool)
	if err != nil || !ok {
		return false, err
	}
	state.Nodes = replaceRows(state.Nodes, since.Nodes, func(n *node.Node) (string, bool) {
		return n.ID, isLive(&node.Machine, n.State())
	})
	state.Reservations = replaceRows(state.Reservations, since.Reservations,
		func(r *reservation.Reservation) (string, bool) { return r.ID, r.Live() })
	state.Allocations = replaceRows(state.Allocations, since.Allocations,
		func(a *allocation.Allocation) (string, bool) { return a.ID, a.Live() })
	state.Uses = replaceRows(state.Uses, since.Uses, func(u *ledger.PoolUse) (string, bool) {
		return u.OrganizationID, true
	})
	return true, nil
}

func isLive[S, E ~string](t *statemachine.Table[S, E], state S) bool { return !t.Terminal(state) }

// replaceRows returns a new list, ordered by id, of the rows of all with those that were
// written in place of their former selves, and without those that are over.
func replaceRows[T any](all, written []T, look func(*T) (id string, live bool)) []T {
	if len(written) == 0 {
		return all
	}
	changed := make(map[string]bool, len(written))
	out := make([]T, 0, len(all)+len(written))
	for i := range written {
		id, live := look(&written[i])
		changed[id] = true
		if live {
			out = append(out, written[i])
		}
	}
	for i := range all {
		if id, _ := look(&all[i]); !changed[id] {
			out = append(out, all[i])
		}
	}
	slices.SortFunc(out, func(a, b T) int {
		first, _ := look(&a)
		second, _ := look(&b)
		return cmp.Compare(first, second)
	})
	return out
}
