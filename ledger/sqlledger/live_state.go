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
// may have many thousand live rows, of which few have changed since. What is
// remembered is never changed.
type liveStates struct {
	mu        sync.Mutex
	pools     map[string]livePool        // by id
	committed map[string]liveCommitments // by organization
}

// livePool is a pool as it was read.
type livePool struct {
	state ledger.PoolState
	spent *spentSums // what its ended bookings had spent then; nil: nobody has asked
}

func (l *liveStates) find(id string) (livePool, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pools[id]
	return p, ok
}

// keepNewer remembers a pool, unless a later state of it is.
func (l *liveStates) keepNewer(p livePool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools == nil {
		l.pools = map[string]livePool{}
	}
	id := p.state.Pool.ID
	if before, ok := l.pools[id]; !ok || before.state.Pool.Changes <= p.state.Pool.Changes {
		l.pools[id] = p
	}
}

// LiveState reads the pool's row, and then what was written in the pool since it was
// read last.
func (r capacityReader) LiveState(id string) (ledger.PoolState, error) {
	pool, err := readRow[poolRow](r.newQuery().Where("id = ?", id), "reading pool "+id)
	if err != nil {
		return ledger.PoolState{}, err
	}
	p, err := r.readLivePool(pool)
	return p.state, err
}

// readLivePool returns what is live in a pool whose row was read just now.
func (r capacityReader) readLivePool(pool ledger.Pool) (livePool, error) {
	p, ok := r.store.live.find(pool.ID)
	var err error
	switch {
	case ok && reflect.DeepEqual(p.state.Pool, pool):
		return p, nil
	case ok && p.state.Pool.Revision == pool.Revision: // only the row has changed
	case ok:
		if ok, err = r.bringUpToDate(&p); err != nil {
			return p, err
		}
	}
	if !ok {
		var rows poolRows
		if err := r.readTogether(rows.liveQueries(pool.ID)...); err != nil {
			return p, err
		}
		p = livePool{}
		if p.state, err = rows.toState(pool.ID); err != nil {
			return p, err
		}
	}
	p.state.Pool = pool
	p.state = p.state.Shared()
	r.remember(p)
	return p, nil
}

// remember keeps a pool, unless it was read in a transaction, which may have changed it
// and may be rolled back.
func (r capacityReader) remember(p livePool) {
	if r.isSnapshot {
		r.store.live.keepNewer(p)
	}
}

// bringUpToDate adds to a pool what was written since. False: that cannot be told.
func (r capacityReader) bringUpToDate(p *livePool) (bool, error) {
	state := &p.state
	since, ok, err := r.PoolStateSince(state.Pool)
	if err != nil || !ok {
		return false, err
	}
	p.spent = p.spent.addEnded(since)
	state.Nodes = replaceRows(state.Nodes, since.Nodes, func(n *node.Node) (string, bool) {
		return n.ID, isLive(&node.Machine, n.State())
	})
	state.Reservations = replaceRows(state.Reservations, since.Reservations,
		func(r *reservation.Reservation) (string, bool) { return r.ID, r.Live() })
	state.Allocations = replaceRows(state.Allocations, since.Allocations,
		func(a *allocation.Allocation) (string, bool) { return a.ID, a.Live() })
	state.Uses = replaceRows(state.Uses, since.Uses, func(u *ledger.PoolUse) (string, bool) {
		return u.OrganizationID + u.UserID, true // the ids of users come after their organization's
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
