package sqlledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// Jobs are found by when they were submitted, by an index alone.
func TestJobsByTheTimeOfTheirSubmission(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	s := openMigrated(t, now)
	c := ledger.Change{Organizations: []ledger.Organization{{ID: "org_1", Name: "one"}}, Pools: []ledger.Pool{onePool()}}
	var made []string
	for day := range 5 {
		at := now.Now().AddDate(0, 0, day)
		made = append(made, ids.First(ids.Job, at))
		c.Jobs = append(c.Jobs, job.New(job.Job{ID: made[day], OrganizationID: "org_1", PoolID: "pol_1",
			Priority: job.Normal, Shape: capacity.Shape{Nodes: 1, PerNode: 1}}, false, at))
	}
	inOneTx(t, s, func(tx ledger.Tx) error { return tx.Save(c) })
	inOneTx(t, s, func(tx ledger.Tx) error {
		f := ledger.JobFilter{Since: now.Now().AddDate(0, 0, 1), Until: now.Now().AddDate(0, 0, 3)}
		found, err := tx.Jobs(ledger.Scope{OrganizationID: "org_1"}, f, ledger.Page{Limit: 10})
		require.NoError(t, err)
		var got []string
		for _, j := range found {
			got = append(got, j.ID)
		}
		require.Equal(t, made[1:3], got)
		counted, err := tx.CountJobs(ledger.Scope{All: true}, ledger.JobFilter{Since: f.Until})
		require.Equal(t, map[job.State]int{job.Pending: 2}, counted)
		return err
	})
}

// Whose turn is next can be decided anew: where what is stored cannot be read, it says so, and jobs go on.
func TestTurnsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	s := openMigrated(t, now)
	turns := ledger.JobTurns{PoolID: "pol_1", DecidedAt: now.Now(), Next: []ledger.JobTurn{{JobID: "job_1"}}}
	inOneTx(t, s, func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Pools: []ledger.Pool{onePool()}, JobTurns: []ledger.JobTurns{turns}})
	})
	require.NoError(t, ExecBehind(t.Context(), s, "UPDATE job_turns SET jobs = '[{'"))
	for _, want := range []ledger.JobTurns{{PoolID: "pol_1", Damaged: true}, turns} {
		inOneTx(t, s, func(tx ledger.Tx) error {
			got, err := tx.JobTurns("pol_1")
			require.Equal(t, want, got)
			return err
		})
		inOneTx(t, s, func(tx ledger.Tx) error {
			return tx.Save(ledger.Change{JobTurns: []ledger.JobTurns{turns}})
		})
	}
}

// A row that a version wrote which knew of nobody ahead can be read: nobody is.
func TestTurnsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	s := openMigrated(t, now)
	inOneTx(t, s, func(tx ledger.Tx) error { return tx.Save(ledger.Change{Pools: []ledger.Pool{onePool()}}) })
	require.NoError(t, ExecBehind(t.Context(), s, "INSERT INTO job_turns (pool_id, decided_at, jobs) VALUES "+
		fmt.Sprintf(`('pol_1', %d, '[{"id":"job_1"}]')`, now.Now().UnixMicro())))
	inOneTx(t, s, func(tx ledger.Tx) error {
		got, err := tx.JobTurns("pol_1")
		require.Equal(t, ledger.JobTurns{PoolID: "pol_1", DecidedAt: now.Now(), Next: []ledger.JobTurn{{JobID: "job_1"}},
			Ahead: []ledger.JobAhead{}}, got)
		return err
	})
}
