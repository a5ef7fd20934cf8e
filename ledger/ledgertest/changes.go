package ledgertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// revise sets the revision of pol_1, and returns the pool as it is then.
func revise(w *world, revision int64, c ledger.Change) ledger.Pool {
	w.Helper()
	c.Revisions = map[string]int64{"pol_1": revision}
	w.mustSave(c)
	return readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
}

// stateSince reads what was written since a pool was as known: in a snapshot, in a
// transaction, and together with the pool's lock.
func stateSince(w *world, known ledger.Pool) (state ledger.PoolState, ok bool) {
	w.Helper()
	w.readSnapshot(func(r ledger.Reader) (err error) {
		state, ok, err = r.PoolStateSince(known)
		return err
	})
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		again, told, err := tx.PoolStateSince(known)
		require.Equal(w, ok, told)
		require.Equal(w, state, again)
		return err
	}))
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{Pools: []string{"pol_1"}, Known: []ledger.Pool{known}})
		again, told := locked.Since["pol_1"]
		require.Equal(w, ok, told)
		require.Equal(w, state, again)
		return err
	}))
	return state, ok
}

// whatChangedInAPoolIsListed: rows that are over come too, each once, in the version
// that counts.
func whatChangedInAPoolIsListed(w *world) {
	n := saveGround(w)
	held := activeAllocation(w, "alc_1", "org_1", n, day, 2, 0)
	start := revise(w, 100, ledger.Change{Allocations: []allocation.Allocation{held},
		Reservations: []reservation.Reservation{bookedReservation(w, "rsv_1", "org_1", "pol_1", day)}})
	require.Equal(w, int64(11), start.Changes)

	made := bookedReservation(w, "rsv_2", "org_1", "pol_1", day)
	over := fullReservation(w, "rsv_3", "org_1", "pol_1")
	elsewhere := bookedReservation(w, "rsv_4", "org_1", "pol_2", day)
	middle := revise(w, -7, ledger.Change{Reservations: []reservation.Reservation{made, over, elsewhere}})
	held.Version = 1
	held = releasedAllocation(w, held, day.Add(time.Hour))
	gone := fullNode(w, "nod_2", "pol_1", 3)
	use := ledger.PoolUse{PoolID: "pol_1", Account: ledger.Account{OrganizationID: "org_2", UserID: "usr_2"},
		Usage: fairshare.Usage{At: day, Claimed: 2}}
	require.NoError(w, w.inTx(func(tx ledger.Tx) error { // what is written ahead of the revision belongs to it
		if err := tx.Save(ledger.Change{Nodes: []node.Node{gone}}); err != nil {
			return err
		}
		return tx.Save(ledger.Change{Allocations: []allocation.Allocation{held}, Uses: []ledger.PoolUse{use},
			Revisions: map[string]int64{"pol_1": 8}, Last: true})
	}))
	end := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })

	made.Version, over.Version, held.Version, gone.Version = 1, 1, 2, 1
	state, ok := stateSince(w, middle)
	require.True(w, ok)
	require.Equal(w, end, state.Pool)
	require.Equal(w, []node.Node{gone}, state.Nodes)
	require.Equal(w, []allocation.Allocation{held}, state.Allocations)
	require.Equal(w, []ledger.PoolUse{use}, state.Uses)
	require.Empty(w, state.Reservations)
	state, ok = stateSince(w, start)
	require.True(w, ok)
	require.Equal(w, []reservation.Reservation{made, over}, state.Reservations)
	require.Len(w, state.Allocations, 1)
	state, ok = stateSince(w, end)
	require.True(w, ok)
	require.Equal(w, ledger.PoolState{Pool: end}, ledger.PoolState{Pool: state.Pool}, "nothing has changed")
}

// changesThatCannotBeTold: the pool was never as it is remembered, or what changed is
// forgotten.
func changesThatCannotBeTold(w *world) {
	saveGround(w)
	before := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	first := revise(w, 100, ledger.Change{})
	_, ok := stateSince(w, before)
	require.False(w, ok, "from before changes were listed")
	second := revise(w, 101, ledger.Change{})
	for name, never := range map[string]func(p *ledger.Pool){
		"another revision": func(p *ledger.Pool) { p.Revision++ },
		"of the future":    func(p *ledger.Pool) { p.Changes += 2 },
	} {
		p := second
		never(&p)
		_, ok = stateSince(w, p)
		require.False(w, ok, name)
	}
	var many []reservation.Reservation
	for i := range 1200 {
		many = append(many, bookedReservation(w, fmt.Sprintf("rsv_%04d", i), "org_1", "pol_1", day))
	}
	revise(w, 103, ledger.Change{Reservations: many})
	state, ok := stateSince(w, first)
	require.True(w, ok)
	require.Len(w, state.Reservations, 1200)
	after := revise(w, 104, ledger.Change{})
	reviseOften(w, 105, 40)
	_, ok = stateSince(w, first)
	require.True(w, ok)
	for i := range many {
		many[i].Version = 1
	}
	revise(w, 150, ledger.Change{Reservations: many})
	_, ok = stateSince(w, first)
	require.False(w, ok, "what is so large is forgotten with the next that is")
	_, ok = stateSince(w, after)
	require.True(w, ok, "what came after it is not")
	reviseOften(w, 200, 1100)
	_, ok = stateSince(w, after)
	require.False(w, ok, "forgotten")
}

// reviseOften sets so many revisions, one after the other.
func reviseOften(w *world, from, many int64) {
	w.Helper()
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		for i := range many {
			if err := tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": from + i}}); err != nil {
				return err
			}
		}
		return nil
	}))
}
