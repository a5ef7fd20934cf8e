package proof_test

import (
	"bufio"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/migrations"
)

// upgradedActs is how long the history is that goes on after an upgrade.
const upgradedActs = 60

// database is where an upgrade is tried.
type database struct {
	driver, address string // of database/sql
	empty           string // the address of another one
	dialect         goose.Dialect
	folder          string // of the migrations
	config          sqlledger.Config
	set             func(time.Time) // moves its clock
}

func TestUpgradeOfEachRelease(t *testing.T) {
	t.Parallel()
	forEachRelease(t, func(t *testing.T, release string) {
		path := filepath.Join(t.TempDir(), "upgraded.db")
		c := clock.NewManual(monday)
		upgradeAndGoOn(t, release, database{driver: "sqlite", address: path,
			empty: filepath.Join(t.TempDir(), "new.db"), dialect: goose.DialectSQLite3, folder: "sqlite",
			config: sqlledger.Config{URL: "sqlite://" + path, Clock: c, Unsafe: true}, set: c.Set})
	})
}

func forEachRelease(t *testing.T, fn func(t *testing.T, release string)) {
	t.Helper()
	releases, err := filepath.Glob("testdata/release*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, releases)
	for _, release := range releases {
		t.Run(filepath.Base(release), func(t *testing.T) {
			t.Parallel()
			fn(t, release)
		})
	}
}

// upgradeAndGoOn fills a database as a release left it, and has this version find
// everything and go on.
func upgradeAndGoOn(t *testing.T, release string, d database) {
	t.Helper()
	left, rows := readRelease(t, release)
	db, err := sql.Open(d.driver, d.address)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	migrateTo(t, db, d, left.Version)
	insertRows(t, db, d, rows)
	before := countRows(rows)
	for _, table := range tableNames(t, db, d.driver) {
		require.Positive(t, before[table], "%s has no row of %s", release, table)
	}
	kept := readKept(t, db, rows)

	w := openWorld(t, t.Context(), d.config, d.set)
	defer w.closeStore()
	have, want, err := w.store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, have)
	requireKept(t, kept, readKept(t, db, rows))
	requireSchemaOfNew(t, db, d, want)

	w.setTime(left.At)
	w.ledger = verbs.New(w.store, ids.UUID{}, sealingSettings())
	w.adoptTenants()
	w.requirePortReads(kept)
	audit, err := w.ledger.VerifyJournal(t.Context(), ledger.SystemActor("test"), ledger.AuditRequest{})
	require.NoError(t, err)
	require.Nil(t, audit.Finding, "the journal is as it was sealed")
	require.Equal(t, before["journal_seals"], audit.Seals)
	found := requireSound(t, w.readRows)
	require.Len(t, found.OverReservations, before["reservations"]-len(found.Pools[0].Reservations))
	require.Len(t, found.OverAllocations, before["allocations"]-len(found.Pools[0].Allocations))

	chance := seeded{rand.New(rand.NewPCG(2, 2))} //nolint:gosec // a test's chance is to be repeatable
	for range upgradedActs {
		w.takeStep(chance)
	}
	after := requireSound(t, w.readRows)
	require.Greater(t, len(after.OverReservations), len(found.OverReservations), "it goes on")
	require.Greater(t, len(after.OverAllocations), len(found.OverAllocations), "it goes on")
}

// readRelease reads the file that TestReleaseIsWritten wrote.
func readRelease(t *testing.T, path string) (left installation, rows []storedRow) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	d := json.NewDecoder(bufio.NewReader(file))
	d.UseNumber()
	require.NoError(t, d.Decode(&left))
	for d.More() {
		var row storedRow
		require.NoError(t, d.Decode(&row))
		rows = append(rows, row)
	}
	return left, rows
}

// migrateTo makes the tables as a release had them.
func migrateTo(t *testing.T, db *sql.DB, d database, version int64) {
	t.Helper()
	folder, err := fs.Sub(migrations.FS, d.folder)
	require.NoError(t, err)
	provider, err := goose.NewProvider(d.dialect, db, folder, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), version)
	require.NoError(t, err)
}

// insertRows inserts the rows of a release, which has at least one of each table.
func insertRows(t *testing.T, db *sql.DB, d database, rows []storedRow) {
	t.Helper()
	for _, row := range rows {
		columns := slices.Sorted(maps.Keys(row.Row))
		values, marks := make([]any, len(columns)), make([]string, len(columns))
		for i, column := range columns {
			values[i], marks[i] = storedValue(t, row.Row[column]), fmt.Sprintf("$%d", i+1)
		}
		given := ""
		if d.folder == "postgres" {
			given = "OVERRIDING SYSTEM VALUE "
		}
		_, err := db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (%s) %sVALUES (%s)", row.Table,
			strings.Join(columns, ", "), given, strings.Join(marks, ", ")), values...)
		require.NoError(t, err, "%s: %v", row.Table, row.Row)
	}
	if d.folder != "postgres" {
		return
	}
	for _, table := range []string{"events", "forecasts"} { // count on from what is there, as after a restore
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(
			"SELECT setval(pg_get_serial_sequence('%s', 'seq'), (SELECT MAX(seq) FROM %s))", table, table))
		require.NoError(t, err)
	}
}

func countRows(rows []storedRow) map[string]int {
	count := map[string]int{}
	for _, row := range rows {
		count[row.Table]++
	}
	return count
}

// storedValue is a value of a release's file as drivers take it.
func storedValue(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		require.NoError(t, err)
		return f
	case map[string]any:
		bytes, err := hex.DecodeString(fmt.Sprint(v["hex"]))
		require.NoError(t, err)
		return bytes
	default:
		return v
	}
}

// adoptTenants takes over the pool, the people and agents, and the machines that are
// there.
func (w *world) adoptTenants() {
	w.t.Helper()
	var all []ledger.Organization
	require.NoError(w.t, w.store.Read(w.ctx, func(r ledger.Reader) (err error) {
		if all, err = r.Organizations(ledger.Scope{All: true}, ledger.Page{}); err != nil {
			return err
		}
		w.pool, err = r.Pool("lab")
		return err
	}))
	for _, org := range all {
		if org.Name == "wide" || org.Name == "narrow" {
			w.addActors(org)
		}
	}
	for _, n := range w.readRows(false).Pools[0].Nodes {
		if n.State() == node.Ready || n.State() == node.Booting || n.State() == node.Draining {
			w.up[n.ID] = w.now
		}
	}
}
