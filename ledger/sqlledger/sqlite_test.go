package sqlledger_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
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

// The input of a job has secrets. Once it is deleted nothing of it is left in the file, nor in its log, which is gone
// with the last connection.
func TestDeletedInputIsGone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	marker := []byte("the secret of a job")
	find := func() (found bool) {
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(folder, f.Name()))
			require.NoError(t, err)
			found = found || bytes.Contains(data, marker)
		}
		return found
	}
	open := func() *sqlledger.Store {
		store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://" + filepath.Join(folder, "a.db"),
			Clock: clock.NewManual(start)})
		require.NoError(t, err)
		return store
	}
	store := open()
	require.NoError(t, store.Migrate(t.Context()))
	j := job.New(job.Job{ID: "job_1", OrganizationID: "org_1", PoolID: "pol_1", Priority: job.Normal,
		Shape: capacity.Shape{Nodes: 1, PerNode: 1}, MaxRuntime: time.Hour, Command: job.Command{
			Arguments: []string{"true"}, Input: bytes.Repeat(marker, 1000)}}, false, start)
	pool := ledger.Pool{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}
	require.NoError(t, saveChange(t, store, ledger.Change{
		Organizations: []ledger.Organization{{ID: "org_1", Name: "acme"}}, Pools: []ledger.Pool{pool}, Jobs: []job.Job{j}}))
	require.NoError(t, store.Close())
	require.True(t, find(), "it is stored as it is")

	store = open()
	require.NoError(t, saveChange(t, store, ledger.Change{DroppedInput: []string{"job_1"}}))
	require.NoError(t, store.Close())
	require.False(t, find())
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
