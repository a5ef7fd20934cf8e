package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// How long rows that are over are kept, and how many are deleted at a time: a queue
// that is never swept slows down, and a large sweep stops everybody else.
const (
	keepDone    = 24 * time.Hour
	keepReplays = ledger.KeepAnswers
	keepPlans   = 24 * time.Hour // after they expired
	sweepSize   = 500
)

// Wake makes a keyed row run sooner. A zero time means never, as everywhere, and
// changes nothing.
func (t *tx) Wake(key string, at time.Time) error {
	if key == "" || at.IsZero() {
		return nil
	}
	t.tasks = true
	s := t.changeWriter()
	s.wakeTasks([]ledger.Wakeup{{Key: key, At: at}})
	return s.flushChanges(false)
}

// finishTask ends a guarded run. If the row was woken meanwhile, it runs again at the
// earlier of that time and the next.
func finishTask(s changeWriter, run ledger.FinishedRun, now time.Time) {
	done, failed, us := run.Next.IsZero(), run.Failure != "", toMicros(run.Next)
	s.execStatement("finishing task "+run.Guard.TaskID, `
		UPDATE tasks SET
			state       = CASE WHEN key = '' AND ? THEN 'done' ELSE 'ready' END,
			finished_at = CASE WHEN key = '' AND ? THEN CAST(? AS BIGINT) ELSE 0 END,
			run_at      = CASE WHEN wake_at <> 0 AND (? OR wake_at < ?) THEN wake_at ELSE CAST(? AS BIGINT) END,
			attempt = attempt + 1, wake_at = 0, dispatches = 0, dispatch_after = 0, lease_until = 0, last_error = ?,
			failures    = CASE WHEN ? THEN failures + 1 ELSE 0 END,
			failed_at   = CASE WHEN ? THEN CAST(? AS BIGINT) ELSE 0 END
		WHERE id = ? AND fence = ? AND state = 'running'`, ledger.ErrFenced,
		done, done, toMicros(now), done, us, us, run.Failure, failed, failed, toMicros(now), run.Guard.TaskID,
		int64(run.Guard.Fence))
}

// requireFence makes the transaction fail when the worker's guard is void: what it
// did under the guard must not be committed.
func (t *tx) requireFence(doing string, changed int64) error {
	if changed == 1 {
		return nil
	}
	return t.failWith(wrapError(doing, ledger.ErrFenced))
}

// ClaimTask gives the caller a ready row's attempt. ErrFenced means that the
// attempt was claimed, or run, before: the message was delivered twice.
func (t *tx) ClaimTask(id string, attempt int, lease time.Duration) (ledger.Task, error) {
	doing := "claiming task " + id
	tasks, err := t.updateTasks(doing, `
		UPDATE tasks SET state = 'running', fence = fence + 1, lease_until = ?, wake_at = 0
		WHERE id = ? AND state = 'ready' AND attempt = ?
		RETURNING *`, toMicros(t.Now().Add(lease)), id, attempt)
	if err != nil {
		return ledger.Task{}, err
	}
	if len(tasks) == 0 {
		return ledger.Task{}, wrapError(doing, ledger.ErrFenced)
	}
	return tasks[0], nil
}

func (t *tx) Extend(g ledger.Guard, lease time.Duration) error {
	doing := "extending the lease of task " + g.TaskID
	n, err := t.execStatement(doing,
		"UPDATE tasks SET lease_until = ? WHERE id = ? AND fence = ? AND state = 'running'",
		toMicros(t.Now().Add(lease)), g.TaskID, g.Fence)
	if err != nil {
		return err
	}
	return t.requireFence(doing, n)
}

// Dispatch marks due rows as sent. On PostgreSQL, dispatchers that run at the same
// time skip each other's rows; on SQLite they take turns.
func (t *tx) Dispatch(limit int, window time.Duration) ([]ledger.Task, error) {
	now := t.Now()
	tasks, err := t.updateTasks("dispatching tasks", fmt.Sprintf(`
		UPDATE tasks SET dispatch_after = ?, dispatches = dispatches + 1
		WHERE id IN (
			SELECT id FROM tasks
			WHERE state = 'ready' AND run_at > 0 AND run_at <= ? AND dispatch_after <= ?
			ORDER BY run_at LIMIT %d%s)
		RETURNING *`, limit, t.store.dialect.skipLocked), toMicros(now.Add(window)), toMicros(now), toMicros(now))
	slices.SortFunc(tasks, func(a, b ledger.Task) int {
		return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
	})
	return tasks, err
}

// dueTask finds one task that Dispatch would return. Its parameters are the time, twice,
// where the database does not tell it.
func dueTask(d *dialect) string {
	now := "?"
	if d.now != "" {
		now = "(" + d.now + ")"
	}
	return "SELECT 1 FROM tasks WHERE state = 'ready' AND run_at > 0 AND run_at <= " + now +
		" AND dispatch_after <= " + now + " LIMIT 1"
}

// TasksDue asks in one statement, past gorm.
func (s *Store) TasksDue(ctx context.Context) (bool, error) {
	var args []any
	if s.dialect.now == "" {
		now := toMicros(s.clock.Now())
		args = []any{now, now}
		// SQLite's driver would watch the context in a goroutine for each statement, which
		// costs as much as this one.
		ctx = context.WithoutCancel(ctx)
	}
	var found int
	err := s.read.Statement.ConnPool.QueryRowContext(ctx, s.dialect.dueTask, args...).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrapError("looking for due tasks", err)
}

// What is swept. The limits are part of the text: SQLite would prepare a statement
// with a parameter as its limit anew for each execution.
var (
	sweepDone = fmt.Sprintf(`
		DELETE FROM tasks WHERE id IN (
			SELECT id FROM tasks WHERE state = 'done' AND finished_at < ? ORDER BY finished_at LIMIT %d)`, sweepSize)
	sweepReplays = fmt.Sprintf(`
		DELETE FROM idempotency WHERE (organization_id, route, key) IN (
			SELECT organization_id, route, key FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT %d)`,
		sweepSize)
	sweepPlans = fmt.Sprintf(`
		DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE expires_at < ? ORDER BY expires_at LIMIT %d)`,
		sweepSize)
)

// Reap makes rows ready again whose worker has fallen silent, and deletes a few
// rows that are over.
func (t *tx) Reap() (int, error) {
	now := t.Now()
	n, err := t.execStatement("reaping tasks", `
		UPDATE tasks SET state = 'ready', attempt = attempt + 1,
			wake_at = 0, dispatches = 0, dispatch_after = 0, lease_until = 0, last_error = 'lease ended'
		WHERE state = 'running' AND lease_until < ?`, toMicros(now))
	if err != nil {
		return 0, err
	}
	t.tasks = t.tasks || n > 0
	_, err = t.execStatement("sweeping finished tasks", sweepDone, toMicros(now.Add(-keepDone)))
	if err != nil {
		return 0, err
	}
	_, err = t.execStatement("sweeping stored answers", sweepReplays, toMicros(now.Add(-keepReplays)))
	if err != nil {
		return 0, err
	}
	_, err = t.execStatement("sweeping plans", sweepPlans, toMicros(now.Add(-keepPlans)))
	if err != nil {
		return 0, err
	}
	over := now.Add(-ledger.KeepOutput)
	_, err = t.execStatement("sweeping output", sweepOutput, ids.First(ids.Job, over), toMicros(over))
	return int(n), err
}

// sweepOutput deletes what jobs wrote that have been over for long. Their ids, which are in the order
// of time, keep it from looking at what is younger.
const sweepOutput = `
	DELETE FROM job_output WHERE job_id IN (
		SELECT id FROM jobs WHERE ended_at > 0 AND id IN (SELECT DISTINCT job_id FROM job_output WHERE job_id < ?)
			AND ended_at < ? ORDER BY id LIMIT 20)`

// updateTasks runs an UPDATE that returns task rows.
func (t *tx) updateTasks(doing, statement string, args ...any) ([]ledger.Task, error) {
	t.writes++
	tasks, err := listRows[taskRow](t.newQuery().Raw(statement, args...), doing)
	if err != nil {
		return nil, t.failWith(err)
	}
	return tasks, nil
}
