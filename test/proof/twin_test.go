//go:build services

package proof_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that dump reads PostgreSQL with
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// twinActs is how long one history of the twins is.
const twinActs = 200

// moveClockOf makes PostgreSQL's clock of one database one that the test moves: an
// unqualified clock_timestamp() finds the function of a schema that is searched
// before the built-in ones. It returns how the clock is moved.
func moveClockOf(t *testing.T, address string) func(time.Time) {
	t.Helper()
	parsed, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	runStatements(t, address,
		"CREATE SCHEMA standing",
		"CREATE TABLE standing.clock (at timestamptz NOT NULL)",
		"INSERT INTO standing.clock VALUES ('2026-03-02T09:00:00Z')",
		"CREATE FUNCTION standing.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM "+
			"standing.clock'",
		fmt.Sprintf("ALTER DATABASE %s SET search_path = public, standing, pg_catalog", parsed.Database))
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return func(at time.Time) {
		_, err := conn.Exec(t.Context(), "UPDATE standing.clock SET at = $1", at)
		require.NoError(t, err)
	}
}

// TestTwins: the same history leaves the same rows on SQLite and on PostgreSQL,
// and everybody is answered the same.
func TestTwins(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "twin.db")
			c := clock.NewManual(monday)
			small := newWorld(t, t.Context(), sqlledger.Config{URL: "sqlite://" + path, Clock: c, Unsafe: true}, c.Set)
			defer small.closeStore()
			address := createPostgres(t)
			large := newWorld(t, t.Context(), sqlledger.Config{URL: address, Clock: c}, moveClockOf(t, address))
			defer large.closeStore()

			a, b := seeded{rand.New(rand.NewPCG(seed, 1))},
				seeded{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // a test's chance is to be repeatable
			for i := range twinActs {
				did := small.takeStep(a)
				require.Equal(t, did, large.takeStep(b), "answer %d", i)
			}
			require.Empty(t, invariants.Check(small.readRows(true)))
			one, other := dumpTables(t, "sqlite", path), dumpTables(t, "pgx", address)
			require.NotEmpty(t, one["reservations"])
			require.NotEmpty(t, one["allocations"])
			for table, rows := range one {
				require.Equal(t, rows, other[table], "rows of %s", table)
			}
			require.Len(t, other, len(one))
		})
	}
}

// own are columns in which the databases may differ: numbers that they hand out,
// and the marks by which a process knows its own writing.
var own = []string{"seq", "xid", "revision", "previous"}

// dumpTables reads all rows of all tables in a form that does not depend on the
// database. Events keep their order.
func dumpTables(t *testing.T, driver, address string) map[string][]string {
	t.Helper()
	db, err := sql.Open(driver, address)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	all := map[string][]string{}
	for _, row := range dumpQuery(t, db, tables[driver]) {
		name := strings.TrimPrefix(row, "name=")
		if strings.HasPrefix(name, "goose") {
			continue
		}
		order := ""
		if name == "events" {
			order = " ORDER BY seq"
		}
		all[name] = dumpQuery(t, db, "SELECT * FROM "+name+order)
		if order == "" {
			slices.Sort(all[name])
		}
	}
	return all
}

func dumpQuery(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	list := []string{}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		var cells []string
		for i, column := range columns {
			if !slices.Contains(own, column) {
				cells = append(cells, column+"="+formatCell(values[i]))
			}
		}
		slices.Sort(cells)
		list = append(list, strings.Join(cells, " "))
	}
	require.NoError(t, rows.Err())
	return list
}

func formatCell(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "1"
		}
		return "0"
	case []byte:
		return hex.EncodeToString(v)
	default:
		return fmt.Sprint(v)
	}
}
