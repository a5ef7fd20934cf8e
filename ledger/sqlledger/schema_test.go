package sqlledger

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/migrations"
)

// openMigrated returns an empty SQLite store for tests that look beneath the port.
func openMigrated(t *testing.T, c clock.Clock) *Store {
	t.Helper()
	store, err := Open(t.Context(), Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "ledger.db"), Clock: c})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	return store
}

// TestMigrationsKnowTheStates: SQL cannot import the transition tables, so its
// lists of states are compared with theirs.
func TestMigrationsKnowTheStates(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"sqlite", "postgres"} {
		text := ""
		files, err := fs.Glob(migrations.FS, folder+"/*.sql")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := fs.ReadFile(migrations.FS, file)
			require.NoError(t, err)
			text += string(content)
		}
		for _, phrase := range []string{
			"CHECK (" + node.Machine.SQLCheck("state") + ")",
			"CHECK (" + reservation.Machine.SQLCheck("state") + ")",
			"CHECK (" + allocation.Machine.SQLCheck("state") + ")",
			"CHECK (" + job.Machine.SQLCheck("state") + ")",
			"ON jobs (pool_id, id) WHERE " + liveJob + ";",
			"ON jobs (array_id) WHERE array_id <> '' AND " + jobWithGPUs + ";",
			"ON nodes (pool_id, slot) WHERE " + liveNode + ";",
			"ON reservations (pool_id, organization_id) WHERE " + liveReservation + ";",
			"ON allocations (pool_id, organization_id) WHERE " + liveAllocation + ";",
			"ON reservations (pool_id, window_start) WHERE " + overReservation + ";",
			"ON allocations (pool_id, window_start) WHERE " + overAllocation + ";",
		} {
			require.Contains(t, text, phrase, folder)
		}
		require.Equal(t, 5, strings.Count(text, "CHECK (state IN ("), "a state column without a test here")
	}
}

func TestJobsWithGPUs(t *testing.T) {
	t.Parallel()
	var with []string
	for _, s := range job.Machine.States {
		if j, err := job.Restore(job.Job{}, s); err == nil && j.HasGPUs() {
			with = append(with, "'"+string(s)+"'")
		}
	}
	require.Equal(t, "state IN ("+strings.Join(with, ", ")+")", jobWithGPUs)
}

func TestOverIsWhatIsNotLive(t *testing.T) {
	t.Parallel()
	require.Equal(t, "state NOT "+strings.TrimPrefix(overReservation, "state "), liveReservation)
	require.Equal(t, "state NOT "+strings.TrimPrefix(overAllocation, "state "), liveAllocation)
}

// TestPlacedIsWhatCommitmentsCount: the query names the states that Placed means.
func TestPlacedIsWhatCommitmentsCount(t *testing.T) {
	t.Parallel()
	var placed []string
	for _, s := range reservation.Machine.States {
		r, err := reservation.Restore(reservation.Reservation{}, s)
		require.NoError(t, err)
		if r.Placed() {
			placed = append(placed, string(s))
		}
	}
	require.Equal(t, placedStates, "state IN ('"+strings.Join(placed, "', '")+"')")
}

// refusesUnknownStates tries to write a word that is no state.
func refusesUnknownStates(t *testing.T, s *Store) {
	t.Helper()
	for table, columns := range map[string]string{
		"tasks": "id, kind, subject, key, attempt, run_at, wake_at, dispatches, dispatch_after, fence, lease_until, " +
			"last_error, failures, failed_at, created_at, finished_at",
		"nodes": "id, pool_id, slot, generation, token, provider_id, address, simulated, reason, provisioner, " +
			"region, type, price, min_billing, billed_from, billed_until, expires_at, quarantine, requested_at, " +
			"booting_at, ready_at, idle_since, retired_at, absent_at, gone_at, version",
	} {
		names := strings.Split(columns, ", ")
		values := make([]any, 0, len(names)+1)
		for _, name := range names {
			switch name {
			case "id", "kind", "subject", "key", "last_error", "pool_id", "token", "provider_id", "address", "reason",
				"provisioner", "region", "type", "quarantine":
				values = append(values, "pol_1")
			case "simulated":
				values = append(values, false)
			default:
				values = append(values, 1)
			}
		}
		insert := "INSERT INTO " + table + " (" + columns + ", state) VALUES (?" + strings.Repeat(", ?", len(names)) +
			")"
		good := map[string]string{"tasks": "ready", "nodes": "gone"}[table]
		require.NoError(t, s.write.WithContext(t.Context()).Exec(
			"DELETE FROM "+table).Error)
		require.Error(t, s.write.WithContext(t.Context()).Exec(insert, append(values, "resting")...).Error, table)
		require.NoError(t, s.write.WithContext(t.Context()).Exec(insert, append(values, good)...).Error, table)
	}
}

func TestUnknownStatesAreRefused(t *testing.T) {
	t.Parallel()
	s := openMigrated(t, nil)
	inOneTx(t, s, func(tx ledger.Tx) error { return tx.Save(ledger.Change{Pools: []ledger.Pool{onePool()}}) })
	refusesUnknownStates(t, s)
}

func onePool() (p ledger.Pool) {
	p.ID, p.Name, p.PerNode = "pol_1", "a", 8
	return p
}

func inOneTx(t *testing.T, s *Store, fn func(tx ledger.Tx) error) {
	t.Helper()
	require.NoError(t, s.InTx(t.Context(), func(tx ledger.Tx) error { return fn(tx) }))
}

// TestFinishedWorkIsSwept: rows that are over are deleted after their time and not
// before, and others never.
func TestFinishedWorkIsSwept(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	s := openMigrated(t, now)
	reap := func() {
		inOneTx(t, s, func(tx ledger.Tx) error { _, err := tx.Reap(); return err })
	}
	counts := func() (tasks map[ledger.TaskState]int, answered bool) {
		require.NoError(t, s.Read(t.Context(), func(r ledger.Reader) (err error) {
			if tasks, err = r.Tasks(); err != nil {
				return err
			}
			_, answered, err = r.Replay("org_1", "r", "k")
			return err
		}))
		return tasks, answered
	}
	inOneTx(t, s, func(tx ledger.Tx) error {
		if err := tx.Save(ledger.Change{
			Tasks:   []ledger.Task{{ID: "tsk_1", RunAt: now.Now()}, {ID: "tsk_2", RunAt: now.Now()}},
			Replays: []ledger.Replay{{Owner: "org_1", Route: "r", Key: "k", CreatedAt: now.Now()}},
		}); err != nil {
			return err
		}
		task, err := tx.ClaimTask("tsk_1", 0, time.Minute)
		if err != nil {
			return err
		}
		return tx.Save(ledger.Change{Finished: []ledger.FinishedRun{
			{Guard: ledger.Guard{TaskID: "tsk_1", Fence: task.Fence}},
		}})
	})
	now.Advance(keepDone)
	reap()
	tasks, answered := counts()
	require.Equal(t, map[ledger.TaskState]int{ledger.TaskDone: 1, ledger.TaskReady: 1}, tasks)
	require.True(t, answered)
	now.Advance(time.Microsecond)
	reap()
	tasks, answered = counts()
	require.Equal(t, map[ledger.TaskState]int{ledger.TaskReady: 1}, tasks)
	require.True(t, answered)
	now.Advance(keepReplays)
	reap()
	_, answered = counts()
	require.False(t, answered)
}

// The output of a job that has been over for long is deleted, and no other.
func TestOldOutputIsSwept(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	s := openMigrated(t, now)
	made := func(state job.State, ended time.Time) job.Job {
		j := job.Job{ID: ids.First(ids.Job, now.Now()) + string(state), OrganizationID: "org_1", PoolID: "pol_1",
			Priority: job.Normal, Shape: capacity.Shape{Nodes: 1, PerNode: 1}, EndedAt: ended}
		j, err := job.Restore(j, state)
		require.NoError(t, err)
		return j
	}
	over, runs := made(job.Completed, now.Now()), made(job.Running, time.Time{})
	inOneTx(t, s, func(tx ledger.Tx) error {
		c := ledger.Change{Organizations: []ledger.Organization{{ID: "org_1", Name: "one"}}, Pools: []ledger.Pool{onePool()},
			Jobs: []job.Job{over, runs}}
		for _, j := range c.Jobs {
			c.JobOutput = append(c.JobOutput, ledger.JobOutput{JobID: j.ID, Attempt: 1, End: 1,
				Pieces: []ledger.JobPiece{{Stream: "stdout", Data: []byte("x")}}})
		}
		return tx.Save(c)
	})
	kept := func() (ids []string) {
		inOneTx(t, s, func(tx ledger.Tx) error {
			_, err := tx.Reap()
			for _, j := range []job.Job{over, runs} {
				end, failed := tx.JobOutputEnd(j.ID, 1, 0)
				require.NoError(t, failed)
				if end > 0 {
					ids = append(ids, string(j.State()))
				}
			}
			return err
		})
		return ids
	}
	now.Advance(ledger.KeepOutput)
	require.Equal(t, []string{"completed", "running"}, kept())
	now.Advance(time.Second)
	require.Equal(t, []string{"running"}, kept())
}

func TestSchemaVersion(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: "sqlite://:memory:"})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	have, want, err := s.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Zero(t, have)
	require.Positive(t, want)
	for range 2 { // the second time there is nothing to do
		require.NoError(t, s.Migrate(t.Context()))
		have, _, err = s.SchemaVersion(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, have)
	}
}
