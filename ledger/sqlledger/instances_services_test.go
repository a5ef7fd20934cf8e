//go:build services

package sqlledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

var errGivenUp = errors.New("given up")

// openInstance opens the database as one more process does.
func openInstance(t *testing.T, address string) *sqlledger.Store {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: address, MaxConns: 8})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// sharedDatabase returns the URL of a migrated database with two pools and a
// tenant.
func sharedDatabase(t *testing.T) string {
	t.Helper()
	address := createDatabase(t)
	store := openInstance(t, address)
	require.NoError(t, store.Migrate(t.Context()))
	saveTenantAndPool(t, store)
	require.NoError(t, saveChange(t, store, ledger.Change{
		Pools: []ledger.Pool{{Pool: capacity.Pool{ID: "pol_2", Name: "b", PerNode: 8}}},
	}))
	return address
}

func lockPools(ids ...string) ledger.LockRequest { return ledger.LockRequest{Pools: ids} }

// TestInstancesSeeEachOthersRevisions: whoever gets the lock finds the revision of
// its last holder, in whichever process, and never one that was given up.
func TestInstancesSeeEachOthersRevisions(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	const each = 50
	var mu sync.Mutex
	last := int64(0) // committed under the lock
	var group sync.WaitGroup
	for worker := range int64(8) {
		store := openInstance(t, address)
		group.Go(func() {
			for i := range int64(each) {
				mine := 1 + worker*each + i
				err := store.InTx(t.Context(), func(tx ledger.Tx) error {
					locked, err := tx.Lock(lockPools("pol_1"))
					if err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					if locked.Revisions["pol_1"] != last || locked.Pools[0].Revision != last {
						return errors.New("another revision than the last one")
					}
					if i%5 == 4 {
						if err := tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": -mine}}); err != nil {
							return err
						}
						return errGivenUp
					}
					err = tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": mine}, Last: true})
					if err == nil {
						last = mine
					}
					return err
				})
				if err != nil && !errors.Is(err, errGivenUp) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// TestALockedPoolHasTheRevisionOfItsHolder: a snapshot from before the wait for the
// lock would show an older one.
func TestALockedPoolHasTheRevisionOfItsHolder(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	here, there := openInstance(t, address), openInstance(t, address)
	isHeld, waited := make(chan struct{}), make(chan map[string]int64, 1)
	go func() {
		<-isHeld
		var revisions map[string]int64
		_ = there.InTx(context.Background(), func(tx ledger.Tx) error {
			locked, err := tx.Lock(lockPools("pol_2"))
			revisions = locked.Revisions
			return err
		})
		waited <- revisions
	}()
	require.NoError(t, here.InTx(t.Context(), func(tx ledger.Tx) error {
		if _, err := tx.Lock(lockPools("pol_2")); err != nil {
			return err
		}
		close(isHeld)
		require.Eventually(t, func() bool { return countWaiting(t, address) == 1 }, patience, tick)
		return tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": 5, "pol_2": 6}, Last: true})
	}))
	require.Equal(t, map[string]int64{"pol_1": 5, "pol_2": 6}, <-waited)
}

// TestAVerbCostsTwoRoundTrips: one to open, one to save and commit.
func TestAVerbCostsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	p, address := startProxy(t, sharedDatabase(t))
	store := openInstance(t, address)
	made := 0
	verb := func() {
		change := newBookings(t, &made, 3)
		change.Revisions = map[string]int64{"pol_1": int64(made)}
		change.Wake, change.Last = []ledger.Wakeup{{Key: "plan:pol_1", At: time.Now()}}, true
		mustWrite(t, store, func(tx ledger.Tx) error {
			_, err := tx.Lock(ledger.LockRequest{
				Organizations: []string{"org_1"}, Pools: []string{"pol_1"},
				Replays: []ledger.ReplayKey{{Owner: "org_1", Route: "r", Key: "k"}},
			})
			require.NoError(t, err)
			require.False(t, tx.Now().IsZero())
			return tx.Save(change)
		})
	}
	verb() // the connection is made and its statements are prepared
	before := p.trips.Load()
	for range 10 {
		verb()
	}
	require.Equal(t, int64(20), p.trips.Load()-before)
}

// TestALostAnswerIsAnError: the caller must not hear that the change is stored,
// though it is; and fn must not run again, since it took effect.
func TestALostAnswerIsAnError(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]bool{"with the save": true, "on its own": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := sharedDatabase(t)
			p, detour := startProxy(t, address)
			store, runs := openInstance(t, detour), 0
			require.NoError(t, saveChange(t, store, ledger.Change{Revisions: map[string]int64{"pol_1": 6}}),
				"statements are prepared")
			err := store.InTx(t.Context(), func(tx ledger.Tx) error {
				runs++
				change := ledger.Change{Revisions: map[string]int64{"pol_1": 7}, Last: last}
				if last {
					p.lost.Store(true)
					return tx.Save(change)
				}
				err := tx.Save(change)
				p.lost.Store(true)
				return err
			})
			require.Error(t, err)
			require.Equal(t, 1, runs)
			witness := openInstance(t, address)
			require.Eventually(t, func() bool { return listPools(t, witness)[0].Revision == 7 }, patience, tick)
			p.lost.Store(false)
			require.NoError(t, saveChange(t, store, ledger.Change{Revisions: map[string]int64{"pol_1": 8}}),
				"the next connection works")
		})
	}
}

// TestADeadlockIsTriedAgain: the transaction that the server gives up runs again.
func TestADeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	var both sync.WaitGroup
	both.Add(2)
	runs := make(chan int, 2)
	for _, order := range [][]string{{"pol_1", "pol_2"}, {"pol_2", "pol_1"}} {
		store := openInstance(t, address+"&deadlock_timeout=10ms")
		go func() {
			n := 0
			err := store.InTx(context.Background(), func(tx ledger.Tx) error {
				n++
				if _, err := tx.Lock(lockPools(order[0])); err != nil {
					return err
				}
				if n == 1 { // each has its first lock before it asks for the other's
					both.Done()
					both.Wait()
				}
				locked, err := tx.Lock(lockPools(order[1]))
				if err != nil {
					return err
				}
				locked.Pools[0].Failures++
				return tx.Save(ledger.Change{Pools: locked.Pools, Last: true})
			})
			if err != nil {
				n = -100
			}
			runs <- n
		}()
	}
	require.Equal(t, 3, <-runs+<-runs, "one of them was tried again, once")
	for _, p := range listPools(t, openInstance(t, address)) {
		require.Equal(t, 1, p.Failures, p.ID)
	}
}
