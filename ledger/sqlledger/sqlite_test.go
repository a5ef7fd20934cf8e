package sqlledger_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// start is when the tests' clock stands.
var start = time.Date(2026, 3, 20, 9, 0, 0, 0, time.UTC)

// openSQLite returns a migrated store in a file of its own.
func openSQLite(t testing.TB, url string) *sqlledger.Store {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url, Clock: clock.NewManual(start)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	return store
}

func inFile(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "odd name#1?.db")
}

func TestEveryDatabaseIsItsOwn(t *testing.T) {
	t.Parallel()
	for name, urls := range map[string][2]string{
		"memory": {"sqlite://:memory:", "sqlite://:memory:"},
		"file":   {inFile(t), inFile(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := openSQLite(t, urls[0]), openSQLite(t, urls[1])
			pool := ledger.Pool{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}
			require.NoError(t, saveChange(t, here, ledger.Change{Pools: []ledger.Pool{pool}}))
			require.Len(t, listPools(t, here), 1)
			require.Empty(t, listPools(t, there))
		})
	}
}
