package proof_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
)

// Since when the wait of a job counts that was there before that was written down.
func TestJobsOfBeforeKeepTheirWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	d := database{driver: "sqlite", address: path, dialect: goose.DialectSQLite3, folder: "sqlite"}
	db, err := sql.Open(d.driver, d.address)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	migrateTo(t, db, d, 22)
	const spec, after = `{"arguments":["a,\"dependencies\":["],"max_runtime":1}`, `{"max_runtime":1,"dependencies":[{}]}`
	want := map[string]int64{}
	for _, j := range []struct {
		id, state, spec    string
		attempt, notBefore int
		eligible           int64
	}{
		{"waits", "pending", spec, 0, 0, 100},
		{"held", "held", spec, 0, 0, 0},
		{"later", "pending", spec, 0, 900, 900},
		{"after another", "pending", after, 0, 0, 0},
		{"tried again", "pending", after, 1, 900, 100},
		{"runs", "running", after, 1, 0, 100},
		{"over", "completed", spec, 1, 0, 0},
	} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO jobs (id, version, organization_id, pool_id, name, submitted_by,
			user_id, priority, nodes, per_node, short, spec, input, array_id, array_index, not_before, attempt, allocation_id,
			failures, losses, reason, attempt_end, gpu_time, cost, state, submitted_at, scheduled_at, started_at, ended_at)
			VALUES (?, 1, 'org', 'pool', '', '', '', 'normal', 1, 1, 0, ?, '', '', 0, ?, ?, '', 0, 0, '', '{}', 0, 0, ?,
			100, 0, 0, 0)`, j.id, j.spec, j.notBefore, j.attempt, j.state)
		require.NoError(t, err)
		want[j.id] = j.eligible
	}
	migrateTo(t, db, d, 23)
	found := map[string]int64{}
	rows, err := db.QueryContext(t.Context(), "SELECT id, eligible_at FROM jobs")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var id string
		var at int64
		require.NoError(t, rows.Scan(&id, &at))
		found[id] = at
	}
	require.NoError(t, rows.Err())
	require.Equal(t, want, found)
}
