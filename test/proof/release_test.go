package proof_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// release makes the file of an installation of this version: at each release, once.
var release = flag.Int("release", 0, "write testdata/releaseN.jsonl, an installation of this release")

// releaseActs is how long its history is.
const releaseActs = 60

// installation is what a release left: the first line of its file. The rows follow, a
// line each, in an order in which they can be inserted.
type installation struct {
	Version int64     `json:"version"` // of the schema
	At      time.Time `json:"at"`
}

// storedRow is a row of a table. Bytes are {"hex": "…"}.
type storedRow struct {
	Table string         `json:"table"`
	Row   map[string]any `json:"row"`
}

func TestReleaseIsWritten(t *testing.T) {
	if *release == 0 {
		return
	}
	path := filepath.Join(t.TempDir(), "release.db")
	c := clock.NewManual(monday)
	w := newWorld(t, t.Context(), sqlledger.Config{URL: "sqlite://" + path, Clock: c, Unsafe: true}, c.Set)
	chance := seeded{rand.New(rand.NewPCG(1, 1))} //nolint:gosec // a test's chance is to be repeatable
	for range releaseActs {
		w.takeStep(chance)
	}
	w.useEverything()
	have, _, err := w.store.SchemaVersion(t.Context())
	require.NoError(t, err)
	lines := []any{installation{Version: have, At: w.now}}
	w.closeStore()
	for _, row := range readAllRows(t, path) {
		lines = append(lines, row)
	}
	var text strings.Builder
	for _, line := range lines {
		require.NoError(t, json.NewEncoder(&text).Encode(line))
	}
	name := fmt.Sprintf("testdata/release%d.jsonl", *release)
	require.NoError(t, os.MkdirAll("testdata", 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
}

// sealingSettings are settings with the secrets of the release's installation.
func sealingSettings() ledger.Config {
	c := settings
	c.PepperCheck, c.Seals = "check", ledger.NewSealKey(slices.Repeat([]byte("k"), 32))
	return c
}

// useEverything writes into the tables that the acts leave empty.
func (w *world) useEverything() {
	w.t.Helper()
	ctx, operator, ann := w.ctx, ledger.SystemActor("test"), w.actors[0]
	l := verbs.New(w.store, &laterIDs{}, sealingSettings())
	_, err := l.Start(ctx, ledger.FirstStart{Organization: "first",
		Operator: ledger.Key{ID: "key_1", Name: "first", Hash: []byte{1, 2, 255}}})
	require.NoError(w.t, err)
	require.NoError(w.t, l.NoteWorker(ctx, ledger.Worker{ID: "one", Host: "gpu-1"}, time.Hour))
	user, err := l.CreateUser(ctx, operator, ledger.User{OrganizationID: ann.OrganizationID, Email: "ann@example.com",
		Role: ledger.Member, Active: true})
	require.NoError(w.t, err)
	_, err = l.CreateKey(ctx, operator, ledger.Key{ID: "key_2", OrganizationID: ann.OrganizationID, UserID: user.ID,
		Name: "laptop", Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{0, 1}})
	require.NoError(w.t, err)
	_, err = l.CreateSchedule(ctx, ann, ledger.Schedule{PoolID: "lab", Name: "nightly", GPUs: 1,
		StartLocal: "2026-03-02T21:00:00", Timezone: "Europe/Berlin", RRule: "FREQ=DAILY", Length: time.Hour,
		DSTPolicy: "shift"})
	require.NoError(w.t, err)
	_, err = l.PausePrewarming(ctx, operator, w.actors[2].OrganizationID, "a test", w.now.Add(time.Hour))
	require.NoError(w.t, err)
	release := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		_, err := l.Allocate(ctx, ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
		return 201, []byte(`{"id":"é"}`), err
	}
	_, _, _, err = l.Once(ctx, ann, ledger.Once{Route: "POST /v1/allocations", Key: "once", Hash: []byte{7}}, release)
	w.requireExpected(err)
	_, err = l.MakePlan(ctx, ann, ledger.Preview{Kind: "allocate", Request: []byte("{}")}, release,
		func(ledger.Effect, []byte) ([]byte, error) { return []byte("{}"), nil })
	w.requireExpected(err)
	require.NoError(w.t, l.HoldProvisioner(ctx, ledger.ProvisionerHold{Name: "sim", Holder: "worker-1"}, time.Hour))
	require.NoError(w.t, l.ReportOrphan(ctx, ledger.Orphan{Machine: "m-1", NodeID: "nod_1", GPUs: 2, BilledFrom: w.now}))
	_, err = l.RecordForecasts(ctx, w.actors[1], []ledger.Forecast{{ID: "f-1", PoolID: w.pool.ID,
		Source: ledger.ByStatistics, ReasonCode: "hour_of_week", IssuedAt: w.now, Start: w.now.Add(time.Hour),
		End: w.now.Add(2 * time.Hour), Said: forecast.Summary{P50: 2, P90: 4, Any: 0.75, Mean: 2},
		Baseline: ledger.FractionOf(0.25)}})
	require.NoError(w.t, err)
	w.joinDaemon(l)
	w.sealJournal(l)
	require.NoError(w.t, w.store.CheckWrites(ctx))
}

// joinDaemon has the daemon of a live node join and report.
func (w *world) joinDaemon(l *verbs.Ledger) {
	w.t.Helper()
	var id string
	require.NoError(w.t, w.store.Read(w.ctx, func(r ledger.Reader) error {
		live, err := r.Nodes(ledger.NodeFilter{Live: true}, whole)
		id = live[0].ID
		return err
	}))
	_, err := l.IssueJoinToken(w.ctx, ledger.SystemActor("test"), id, ledger.NewSecret{ID: "token", Hash: []byte{1}},
		time.Minute)
	require.NoError(w.t, err)
	daemon := ledger.Actor{KeyID: "token", Kind: ledger.JoinToken, NodeID: id}
	_, err = l.JoinNode(w.ctx, daemon, ledger.Joining{BootID: "boot", Key: ledger.NewSecret{ID: "key", Hash: []byte{2}}})
	require.NoError(w.t, err)
	daemon.KeyID, daemon.Kind = "key", ledger.NodeKey
	for _, looks := range [][]activity.Look{{{GPU: "gpu-1"}}, {{GPU: "gpu-1"}}, nil} { // it tells no more at last
		_, err = l.RecordBeat(w.ctx, daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte("{}"), Activity: looks})
		require.NoError(w.t, err)
		w.setTime(w.now.Add(time.Minute))
	}
}

// tables asks a database what tables of ours it has.
var tables = map[string]string{
	"sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
	"pgx":    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
}

// laterIDs do not meet those of the world's own ledger.
type laterIDs struct{ n int }

func (l *laterIDs) New(kind string) string {
	l.n++
	return ids.Derived(kind, "later", fmt.Sprint(l.n))
}

// sealJournal does the work that is due now with the key of l's seals.
func (w *world) sealJournal(l *verbs.Ledger) {
	w.t.Helper()
	require.NoError(w.t, l.EnsureSweep(w.ctx, "sim"))
	due, err := l.Dispatch(w.ctx, 100, time.Minute)
	require.NoError(w.t, err)
	for _, task := range due {
		task, err = l.ClaimTask(w.ctx, task.ID, task.Attempt, time.Hour)
		require.NoError(w.t, err)
		if task.Kind == ledger.TaskSeal {
			_, err = l.SealJournal(w.ctx, ledger.Guard{TaskID: task.ID, Fence: task.Fence})
		} else {
			err = w.handleTask(task)
		}
		require.NoError(w.t, err)
	}
}

// readAllRows reads every table but those of the migrations, in the order in which they
// were made.
func readAllRows(t *testing.T, path string) (all []storedRow) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, table := range tableNames(t, db, "sqlite") {
		for _, row := range readRowsOf(t, db, "SELECT * FROM "+table) {
			all = append(all, storedRow{Table: table, Row: row})
		}
	}
	return all
}

// tableNames are the tables of a database but those of the migrations; of SQLite in the
// order in which they were made.
func tableNames(t *testing.T, db *sql.DB, driver string) (names []string) {
	t.Helper()
	for _, row := range readRowsOf(t, db, tables[driver]) {
		if name := fmt.Sprint(row["name"]); !strings.HasPrefix(name, "goose") {
			names = append(names, name)
		}
	}
	return names
}

func readRowsOf(t *testing.T, db *sql.DB, query string) (list []map[string]any) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.ColumnTypes()
	require.NoError(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		row := map[string]any{}
		for i, column := range columns {
			row[column.Name()] = values[i]
			if bytes, ok := values[i].([]byte); ok {
				row[column.Name()] = map[string]string{"hex": hex.EncodeToString(bytes)}
			} else if column.DatabaseTypeName() == "BOOLEAN" {
				row[column.Name()] = values[i] != int64(0) // which SQLite stores
			}
		}
		list = append(list, row)
	}
	require.NoError(t, rows.Err())
	return list
}
