//go:build services

package sqlledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// saveAssuming saves an event on the assumption a, and returns what came of it. It
// asks for the time anew, so only a machine that stands still between the two makes
// the time stale.
func saveAssuming(t *testing.T, s ledger.Store, a ledger.Assumption) error {
	t.Helper()
	require.NoError(t, s.InTx(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.Lock(ledger.LockRequest{})
		return err
	}))
	return s.InTx(t.Context(), func(tx ledger.Tx) error {
		require.True(t, tx.Assume(a))
		return tx.Save(ledger.Change{
			Events:    []ledger.Event{{At: tx.Now(), Type: "test.assumed", Subject: "x"}},
			Revisions: map[string]int64{"pol_1": a.Revisions["pol_1"] + 1}, Last: true,
		})
	})
}

// A transaction that writes nothing is checked too, when it ends: what its verbs found to be done already may not be.
func TestWhatIsRememberedIsCheckedBeforeNothingIsWritten(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	store, other := openInstance(t, address), openInstance(t, address)
	var locked ledger.Locked
	require.NoError(t, store.InTx(t.Context(), func(tx ledger.Tx) (err error) {
		locked, err = tx.Lock(ledger.LockRequest{Pools: []string{"pol_1"}})
		return err
	}))
	a := ledger.Assumption{Pools: []string{"pol_1"}, Revisions: locked.Revisions}
	require.NoError(t, saveChange(t, other, ledger.Change{Revisions: map[string]int64{"pol_1": 77}}))
	require.ErrorIs(t, store.InTx(t.Context(), func(tx ledger.Tx) error {
		require.True(t, tx.Assume(a))
		return tx.Save(ledger.Change{Last: true})
	}), ledger.ErrStale)
	a.Revisions["pol_1"] = 77
	requireAccepted(t, store, a)
}

// requireAccepted fails the test unless the assumption is accepted. It tries
// several times, since a machine may stand still for a moment, and a refused
// assumption writes nothing.
func requireAccepted(t *testing.T, s ledger.Store, a ledger.Assumption) {
	t.Helper()
	var err error
	for range 20 {
		if err = saveAssuming(t, s, a); !errors.Is(err, ledger.ErrStale) {
			break
		}
	}
	require.NoError(t, err)
}

// TestWhatIsRememberedIsChecked: one round trip commits what rests on memory if
// everything remembered still holds, and nothing at all if anything does not.
func TestWhatIsRememberedIsChecked(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	store, other := openInstance(t, address), openInstance(t, address)
	var locked ledger.Locked
	require.NoError(t, store.InTx(t.Context(), func(tx ledger.Tx) (err error) {
		require.False(t, tx.Assume(ledger.Assumption{}), "nobody told the time yet")
		locked, err = tx.Lock(ledger.LockRequest{Organizations: []string{"org_1"}, Pools: []string{"pol_1"}})
		return err
	}))
	a := ledger.Assumption{Organizations: locked.Organizations, Pools: []string{"pol_1"}, Revisions: locked.Revisions}
	early := a
	require.NoError(t, store.InTx(t.Context(), func(tx ledger.Tx) error {
		early.NotBefore = time.Now().Add(time.Minute)
		require.False(t, tx.Assume(early), "an estimate before what is remembered is wrong")
		return nil
	}))
	requireAccepted(t, store, a)
	require.Equal(t, locked.Revisions["pol_1"]+1, revisionOf(t, other))
	require.ErrorIs(t, saveAssuming(t, store, a), ledger.ErrStale, "its own revision is another one now")

	a.Revisions["pol_1"]++
	requireAccepted(t, store, a)
	a.Revisions["pol_1"]++
	require.NoError(t, saveChange(t, other, ledger.Change{Revisions: map[string]int64{"pol_2": 77}}))
	require.ErrorIs(t, saveAssuming(t, store, a), ledger.ErrStale, "a pool that is not locked counts too")

	a.Revisions["pol_2"] = 77
	org := a.Organizations[0]
	require.NoError(t, saveChange(t, other, ledger.Change{Organizations: []ledger.Organization{org}}))
	require.ErrorIs(t, saveAssuming(t, store, a), ledger.ErrStale, "the organization has another version")
	a.Organizations[0].Version++
	requireAccepted(t, store, a)

	a.Revisions["pol_1"]++
	a.Revisions["pol_3"] = 1
	require.ErrorIs(t, saveAssuming(t, store, a), ledger.ErrStale, "there is no such pool")
	require.Equal(t, a.Revisions["pol_1"], revisionOf(t, other), "what was refused wrote nothing")
}

// revisionOf reads the revision of the first pool.
func revisionOf(t *testing.T, s ledger.Store) int64 {
	t.Helper()
	return listPools(t, s)[0].Revision
}
