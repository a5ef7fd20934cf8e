package proof_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/ledger"
)

// changed are the tables, and the columns as table.column, that a later release does
// not have, or has with other values. Everything else that a release left stays as it is.
var changed = []string{"meta"}

// schemas asks a database for all of its schema.
var schemas = map[string]string{
	"sqlite": "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'",
	"pgx": `
		SELECT table_name || '.' || column_name AS name,
			concat_ws(' ', data_type, is_nullable, column_default, identity_generation) AS sql
		FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
		FROM pg_constraint WHERE connamespace = 'public'::regnamespace`,
}

// requireSchemaOfNew compares an upgraded database's schema with that of a new one.
func requireSchemaOfNew(t *testing.T, upgraded *sql.DB, d database, version int64) {
	t.Helper()
	db, err := sql.Open(d.driver, d.empty)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	migrateTo(t, db, d, version)
	want := readRowsOf(t, db, schemas[d.driver])
	require.NotEmpty(t, want)
	require.ElementsMatch(t, want, readRowsOf(t, upgraded, schemas[d.driver]))
}

// readKept reads by table the columns that a release had, but those that changed.
func readKept(t *testing.T, db *sql.DB, rows []storedRow) map[string][]map[string]any {
	t.Helper()
	kept := map[string][]map[string]any{}
	for _, row := range rows {
		if kept[row.Table] != nil || slices.Contains(changed, row.Table) {
			continue
		}
		columns := slices.DeleteFunc(slices.Sorted(maps.Keys(row.Row)), func(column string) bool {
			return slices.Contains(changed, row.Table+"."+column)
		})
		kept[row.Table] = readRowsOf(t, db, "SELECT "+strings.Join(columns, ", ")+" FROM "+row.Table)
	}
	return kept
}

// requireKept: no row of a release is lost, added or changed by the way to this version.
func requireKept(t *testing.T, before, after map[string][]map[string]any) {
	t.Helper()
	for table, rows := range before {
		require.Len(t, after[table], len(rows), "rows of %s", table)
		require.ElementsMatch(t, rows, after[table], "rows of %s", table)
	}
}

// internal are tables that no verb reads through the port: the store's own.
var internal = []string{"heartbeats", "pool_changes"}

// requirePortReads: the port finds every row of every table that a release left.
func (w *world) requirePortReads(kept map[string][]map[string]any) {
	w.t.Helper()
	found := map[string]int{}
	require.NoError(w.t, w.store.Read(w.ctx, func(r ledger.Reader) error {
		count := func(table string) func(int, error) {
			return func(n int, err error) {
				require.NoError(w.t, err, table)
				found[table] += n
			}
		}
		countTenancy(r, count)
		countCapacity(r, count)
		countWork(r, count)
		countByKey(r, kept, count)
		return nil
	}))
	for table, rows := range kept {
		if !slices.Contains(internal, table) {
			require.Equal(w.t, len(rows), found[table], "rows of %s that the port reads", table)
		}
	}
}

// everybody's rows on one page, the longest there is, are all that a release's file has.
var (
	everybody = ledger.Scope{All: true}
	whole     = ledger.Page{Limit: 500}
)

// counter takes how many rows of a table were read.
type counter func(table string) func(int, error)

func countTenancy(r ledger.Reader, count counter) {
	count("organizations")(lengthOf(r.Organizations(everybody, whole)))
	count("users")(lengthOf(r.Users(everybody, whole)))
	count("api_keys")(lengthOf(r.Keys(everybody, ledger.KeyFilter{}, whole)))
	count("prewarm_pauses")(lengthOf(r.Pauses()))
	check, err := r.PepperCheck()
	count("installation")(min(len(check), 1), err)
}

func countCapacity(r ledger.Reader, count counter) {
	pools, err := r.Pools(whole)
	count("pools")(len(pools), err)
	for _, p := range pools {
		state, err := r.PoolState(p.ID)
		count("usages")(len(state.Uses), err)
	}
	nodes, err := r.Nodes(ledger.NodeFilter{}, whole)
	count("nodes")(len(nodes), err)
	for _, n := range nodes {
		count("gpus")(len(n.Devices), nil)
		count("gpu_stretches")(lengthOfStretches(r, n.ID))
		if _, err := r.Daemon(n.ID); err == nil {
			count("node_daemons")(1, nil)
		}
	}
	count("node_presences")(lengthOf(r.Presences(time.Time{})))
	count("orphans")(lengthOf(r.Orphans(ledger.OrphanFilter{})))
	count("provisioners")(lengthOf(r.Provisioners()))
	count("workers")(lengthOf(r.Workers()))
	count("schedules")(lengthOf(r.Schedules(everybody, whole)))
	count("reservations")(lengthOf(r.Reservations(everybody, ledger.BookingFilter{}, whole)))
	allocations, err := r.Allocations(everybody, ledger.BookingFilter{}, whole)
	count("allocations")(len(allocations), err)
	for _, a := range allocations {
		count("allocation_gpus")(len(a.Devices), nil)
	}
}

func countWork(r ledger.Reader, count counter) {
	end, err := r.JournalEnd()
	count("events")(0, err)
	count("events")(lengthOf(r.Journal(0, end, whole.Limit)))
	count("journal_seals")(lengthOf(r.Seals(0, whole.Limit)))
	count("forecasts")(lengthOf(r.Forecasts(everybody, ledger.ForecastFilter{}, whole.Limit)))
	tasks, err := r.Tasks()
	for _, n := range tasks {
		count("tasks")(n, err)
	}
}

// countByKey counts what the port does not list, but finds by its key.
func countByKey(r ledger.Reader, kept map[string][]map[string]any, count counter) {
	for _, row := range kept["plans"] {
		_, err := r.Preview(everybody, fmt.Sprint(row["id"]))
		count("plans")(1, err)
	}
	for _, row := range kept["idempotency"] {
		_, found, err := r.Replay(fmt.Sprint(row["organization_id"]), fmt.Sprint(row["route"]), fmt.Sprint(row["key"]))
		count("idempotency")(map[bool]int{true: 1}[found], err)
	}
}

// lengthOfStretches counts the stretches of a node's GPUs that are over.
func lengthOfStretches(r ledger.Reader, nodeID string) (int, error) {
	found, err := r.GPUStretches(map[string]calendar.Interval{nodeID: {End: r.Now()}})
	if err != nil {
		return 0, err
	}
	said, err := r.PresencesOf([]string{nodeID})
	open := activity.Until(said[nodeID].Activity, said[nodeID].SeenAt)
	return len(found[nodeID]) - len(open), err
}

func lengthOf[T any](list []T, err error) (int, error) { return len(list), err }
