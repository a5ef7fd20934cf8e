package sqlledger

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
)

// A program of before there was a list sets revisions and lists nothing. What came
// before such a change says nothing of what came after it.
func TestAnUnlistedChangeEndsTheList(t *testing.T) {
	t.Parallel()
	s := openMigrated(t, clock.System{})
	inOneTx(t, s, func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Pools: []ledger.Pool{{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}}})
	})
	revise := func(revision int64) (p ledger.Pool) {
		inOneTx(t, s, func(tx ledger.Tx) (err error) {
			if err = tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": revision}}); err == nil {
				p, err = tx.Pool("pol_1")
			}
			return err
		})
		return p
	}
	since := func(known ledger.Pool) (ok bool) {
		require.NoError(t, s.Read(t.Context(), func(r ledger.Reader) (err error) {
			_, ok, err = r.PoolStateSince(known)
			return err
		}))
		return ok
	}
	before := revise(10)
	require.NoError(t, s.write.Exec("UPDATE pools SET revision = 11").Error)
	require.False(t, since(before))
	after := revise(12)
	require.False(t, since(before), "it was followed by one that is listed")
	revise(13)
	require.True(t, since(after))
}
