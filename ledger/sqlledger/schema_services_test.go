//go:build services

package sqlledger

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// migratedPostgres returns an empty store in a schema of its own.
func migratedPostgres(t *testing.T) *Store {
	t.Helper()
	address := os.Getenv("FOREWARM_TEST_POSTGRES")
	require.NotEmpty(t, address, "FOREWARM_TEST_POSTGRES must name a server on which databases may be made")
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	schema := "forewarm_" + strings.ReplaceAll(ids.UUID{}.New("tst"), "_", "")
	s, err := Open(t.Context(), Config{URL: address + separator + "search_path=" + schema})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.write.Exec("DROP SCHEMA "+schema+" CASCADE").Error)
		require.NoError(t, s.Close())
	})
	require.NoError(t, s.write.WithContext(t.Context()).Exec("CREATE SCHEMA "+schema).Error)
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

// tableColumn is what must be the same in both databases.
type tableColumn struct {
	Table    string
	Name     string
	Nullable bool
}

func tableColumns(t *testing.T, s *Store, query string) []tableColumn {
	t.Helper()
	var list []tableColumn
	require.NoError(t, s.read.WithContext(t.Context()).Raw(query).Scan(&list).Error)
	require.NotEmpty(t, list)
	return list
}

func TestSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	lite := tableColumns(t, openMigrated(t, nil), `
		SELECT m.name AS "table", c.name AS name, c."notnull" = 0 AS nullable
		FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'goose_db_version'`)
	postgres := tableColumns(t, migratedPostgres(t), `
		SELECT table_name AS "table", column_name AS name, is_nullable = 'YES' AS nullable
		FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> 'goose_db_version'`)
	require.ElementsMatch(t, append(lite, tableColumn{Table: "events", Name: "xid"}), postgres)
}

func TestPostgresRefusesUnknownStates(t *testing.T) {
	t.Parallel()
	s := migratedPostgres(t)
	inOneTx(t, s, func(tx ledger.Tx) error { return tx.Save(ledger.Change{Pools: []ledger.Pool{onePool()}}) })
	refusesUnknownStates(t, s)
}
