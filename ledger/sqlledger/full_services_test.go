//go:build services

package sqlledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// TestAFullDiskPostgres raises the server's own error where a row would need
// another page.
func TestAFullDiskPostgres(t *testing.T) {
	t.Parallel()
	store := openPostgres(t)
	saveTenantAndPool(t, store)
	behind := func(statement string) { require.NoError(t, sqlledger.ExecBehind(t.Context(), store, statement)) }
	behind("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
		"RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$")
	for _, table := range []string{"events", "heartbeats"} {
		behind("CREATE TRIGGER full_disk BEFORE INSERT ON " + table + " EXECUTE FUNCTION full_disk()")
	}
	made := 0
	var full *ledger.StorageFullError
	require.ErrorAs(t, saveChange(t, store, newBookings(t, &made, 1)), &full)
	require.Contains(t, full.Where, "PostgreSQL")
	require.ErrorAs(t, store.CheckWrites(t.Context()), &full)
	require.Empty(t, reservationIDs(t, store), "its event could not be written, so it is not there")
	for _, table := range []string{"events", "heartbeats"} {
		behind("DROP TRIGGER full_disk ON " + table)
	}
	require.NoError(t, store.CheckWrites(t.Context()))
	require.NoError(t, saveChange(t, store, newBookings(t, &made, 1)))
	require.Len(t, reservationIDs(t, store), 1)
}

func reservationIDs(t *testing.T, store *sqlledger.Store) (ids []string) {
	t.Helper()
	require.NoError(t, store.Read(t.Context(), func(r ledger.Reader) error {
		list, err := r.Reservations(ledger.Scope{All: true}, ledger.BookingFilter{}, ledger.Page{})
		for _, one := range list {
			ids = append(ids, one.ID)
		}
		return err
	}))
	return ids
}

// TestAStandbyIsNoticed: it answers, and takes no writes.
func TestAStandbyIsNoticed(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	require.NoError(t, openInstance(t, address).CheckWrites(t.Context()))
	standby := openInstance(t, address+"&default_transaction_read_only=on")
	require.ErrorIs(t, standby.CheckWrites(t.Context()), ledger.ErrReadOnly)
	why, err := sqlledger.RefusesWrites(t.Context(), standby)
	require.NoError(t, err)
	require.Contains(t, why, "default_transaction_read_only is on: remove it from FOREWARM_DATABASE")
	change := ledger.Change{Revisions: map[string]int64{"pol_1": 4}}
	require.ErrorIs(t, saveChange(t, standby, change), ledger.ErrReadOnly)
	require.Len(t, listPools(t, standby), 2)
}

// TestSettingWarnings: settings with which a crash can lose data are named at
// the start.
func TestSettingWarnings(t *testing.T) {
	t.Parallel()
	address := createDatabase(t)
	lax, err := openInstance(t, address+"&synchronous_commit=off").SettingWarnings(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(lax, "\n"), "synchronous_commit=off")
	strict, err := openInstance(t, address+"&synchronous_commit=on").SettingWarnings(t.Context())
	require.NoError(t, err)
	require.NotContains(t, strings.Join(strict, "\n"), "synchronous_commit")
}

// TestTablesWithoutVacuumAreNamed at the start, with the fix.
func TestTablesWithoutVacuumAreNamed(t *testing.T) {
	t.Parallel()
	address := createDatabase(t)
	s := openInstance(t, address)
	require.NoError(t, s.Migrate(t.Context()))
	warnings, err := s.SettingWarnings(t.Context())
	require.NoError(t, err)
	require.NotContains(t, strings.Join(warnings, "\n"), "autovacuum")
	_, err = s.DB().ExecContext(t.Context(), "ALTER TABLE events SET (autovacuum_enabled = off)")
	require.NoError(t, err)
	warnings, err = s.SettingWarnings(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(warnings, "\n"), "ALTER TABLE events RESET (autovacuum_enabled)")
}

// TestUpkeepWarnings: what slows the database down is named while it does, with the fix.
func TestUpkeepWarnings(t *testing.T) {
	t.Parallel()
	s := openInstance(t, createDatabase(t))
	require.NoError(t, s.Migrate(t.Context()))
	healthy, err := s.UpkeepWarnings(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Empty(t, healthy)

	forgotten, err := s.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = forgotten.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
	warnings, err := s.UpkeepWarnings(t.Context(), 0)
	require.NoError(t, err)
	require.Contains(t, strings.Join(warnings, "\n"), "pg_terminate_backend(")
	require.NoError(t, forgotten.Rollback())

	for _, change := range []string{
		"CREATE TABLE spare AS SELECT generate_series(1, 60000) AS n",
		"ALTER TABLE spare SET (autovacuum_enabled = off)",
		"DELETE FROM spare",
	} {
		_, err = s.DB().ExecContext(t.Context(), change)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { // statistics come later than what they count
		warnings, err := s.UpkeepWarnings(t.Context(), time.Hour)
		require.NoError(t, err)
		return strings.Contains(strings.Join(warnings, "\n"), "run VACUUM spare")
	}, 2*time.Minute, 50*time.Millisecond)
	version, err := s.ServerVersion(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^PostgreSQL \d+`, version)
}

// TestConnectionsAreTuned for statements that read few rows; what the URL says goes first.
func TestConnectionsAreTuned(t *testing.T) {
	t.Parallel()
	address := createDatabase(t)
	settings := func(s *sqlledger.Store) (jit, workers string) {
		require.NoError(t, s.DB().QueryRowContext(t.Context(),
			"SELECT current_setting('jit'), current_setting('max_parallel_workers_per_gather')").Scan(&jit, &workers))
		return jit, workers
	}
	jit, workers := settings(openInstance(t, address))
	require.Equal(t, []string{"off", "0"}, []string{jit, workers})
	jit, workers = settings(openInstance(t, address+"&jit=on&max_parallel_workers_per_gather=3"))
	require.Equal(t, []string{"on", "3"}, []string{jit, workers})
}
