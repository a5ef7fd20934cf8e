package sqlledger_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// TestAFullDiskSQLite: nothing is half written, reading goes on, and so does
// writing once there is room.
func TestAFullDiskSQLite(t *testing.T) {
	t.Parallel()
	url := inFile(t)
	store := openSQLite(t, url)
	saveTenantAndPool(t, store)
	require.NoError(t, store.CheckWrites(t.Context()))
	require.NoError(t, sqlledger.ExecBehind(t.Context(), store, "PRAGMA max_page_count = 1")) // as many as there are
	made := 0
	var err error
	for range 2000 { // until the pages that are there are full
		change := newBookings(t, &made, 1)
		change.Events[0].Message = strings.Repeat("long ", 100)
		if err = saveChange(t, store, change); err != nil {
			break
		}
	}
	var full *ledger.StorageFullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, strings.TrimPrefix(url, "sqlite://"), full.Where)
	require.ErrorAs(t, store.CheckWrites(t.Context()), &full)
	require.Len(t, listEvents(t, store), min(made-1, 50), "the last one is not there")
	require.Len(t, listPools(t, store), 1, "reading goes on")

	require.NoError(t, sqlledger.ExecBehind(t.Context(), store, "PRAGMA max_page_count = 100000"))
	require.NoError(t, store.CheckWrites(t.Context()))
	require.NoError(t, saveChange(t, store, newBookings(t, &made, 1)))
}

// TestHeartbeatsAreSwept: each check leaves one row.
func TestHeartbeatsAreSwept(t *testing.T) {
	t.Parallel()
	store := openSQLite(t, inFile(t))
	for range 5 {
		require.NoError(t, store.CheckWrites(t.Context()))
	}
	require.Equal(t, 1, sqlledger.Heartbeats(t, store))
}

// TestAnotherSchemaIsNoticed: a newer program migrated, or an older copy came back.
func TestAnotherSchemaIsNoticed(t *testing.T) {
	t.Parallel()
	store := openSQLite(t, inFile(t))
	require.NoError(t, sqlledger.ExecBehind(t.Context(), store,
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)"))
	var schema *ledger.SchemaError
	require.ErrorAs(t, store.CheckWrites(t.Context()), &schema)
	require.Equal(t, int64(99999), schema.Have)
}

// TestAReadOnlyDatabaseIsNoticed: a standby becomes read-only after a fail-over.
func TestAReadOnlyDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	store := openSQLite(t, inFile(t))
	require.NoError(t, sqlledger.ExecBehind(t.Context(), store, "PRAGMA query_only = 1"))
	require.ErrorIs(t, store.CheckWrites(t.Context()), ledger.ErrReadOnly)
	require.NoError(t, sqlledger.ExecBehind(t.Context(), store, "PRAGMA query_only = 0"))
	require.NoError(t, store.CheckWrites(t.Context()))
}
