package sqlledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// How long rows that are over are kept, and how many go at a time: a queue that
// is never swept slows down, and a big sweep stops everybody else.
const (
	keepDone    = 24 * time.Hour
	keepReplays = ledger.KeepAnswers
	keepPlans   = 24 * time.Hour // after they expired
	sweepSize   = 500
)

// Wake pulls a keyed row forward. A zero at means never, as everywhere, and
// changes nothing.
func (t *tx) Wake(key string, at time.Time) error {
	if key == "" || at.IsZero() {
		return nil
	}
	s := t.changeWriter()
	wakeTask(s, key, at)
	return s.flushChanges(false)
}

// wakeTask has a keyed row run at a time, if it would run later.
func wakeTask(s changeWriter, key string, at time.Time) {
	us := toMicros(at)
	s.execStatement("waking task "+key, `
		UPDATE tasks SET
			run_at         = CASE WHEN state = 'ready' THEN CAST(? AS BIGINT) ELSE run_at END,
			dispatch_after = CASE WHEN state = 'ready' THEN 0 ELSE dispatch_after END,
			wake_at        = CASE WHEN state = 'running' THEN CAST(? AS BIGINT) ELSE wake_at END
		WHERE key = ?
		  AND ((state = 'ready' AND (run_at = 0 OR run_at > ?))
		    OR (state = 'running' AND (wake_at = 0 OR wake_at > ?)))`,
		nil, us, us, key, us, us)
}

// Finish ends a guarded run. Being woken meanwhile counts as much as next.
func (t *tx) Finish(g ledger.Guard, next time.Time, failure string) error {
	doing := "finishing task " + g.TaskID
	done := next.IsZero()
	us := toMicros(next)
	n, err := t.execStatement(doing, `
		UPDATE tasks SET
			state       = CASE WHEN key = '' AND ? THEN 'done' ELSE 'ready' END,
			finished_at = CASE WHEN key = '' AND ? THEN CAST(? AS BIGINT) ELSE 0 END,
			run_at      = CASE WHEN wake_at <> 0 AND (? OR wake_at < ?) THEN wake_at ELSE CAST(? AS BIGINT) END,
			attempt = attempt + 1, wake_at = 0, dispatches = 0, dispatch_after = 0, lease_until = 0, last_error = ?,
			failures    = CASE WHEN ? THEN failures + 1 ELSE 0 END,
			failed_at   = CASE WHEN ? THEN CAST(? AS BIGINT) ELSE 0 END
		WHERE id = ? AND fence = ? AND state = 'running'`,
		done, done, toMicros(t.Now()), done, us, us, failure, failure != "", failure != "", toMicros(t.Now()), g.TaskID,
		g.Fence)
	if err != nil {
		return err
	}
	return t.requireFence(doing, n)
}

// requireFence spoils the transaction of a worker whose guard is void: what it did
// under it must not be committed.
func (t *tx) requireFence(doing string, changed int64) error {
	if changed == 1 {
		return nil
	}
	return t.failWith(wrapError(doing, ledger.ErrFenced))
}

// ClaimTask gives the caller a ready row's attempt. ErrFenced means that it was
// claimed, or run, before: a duplicate delivery.
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
	n, err := t.execStatement(doing, "UPDATE tasks SET lease_until = ? WHERE id = ? AND fence = ? AND state = 'running'",
		toMicros(t.Now().Add(lease)), g.TaskID, g.Fence)
	if err != nil {
		return err
	}
	return t.requireFence(doing, n)
}

// Dispatch marks due rows as sent. Dispatchers beside each other on PostgreSQL
// skip each other's rows; on SQLite they take turns.
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

// What is swept. SQLite prepares a statement with a parameter as its limit anew
// for each execution.
var (
	sweepDone = fmt.Sprintf(`
		DELETE FROM tasks WHERE id IN (
			SELECT id FROM tasks WHERE state = 'done' AND finished_at < ? ORDER BY finished_at LIMIT %d)`, sweepSize)
	sweepReplays = fmt.Sprintf(`
		DELETE FROM idempotency WHERE (organization_id, route, key) IN (
			SELECT organization_id, route, key FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT %d)`, sweepSize)
	sweepPlans = fmt.Sprintf(`
		DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE expires_at < ? ORDER BY expires_at LIMIT %d)`, sweepSize)
)

// Reap gives rows whose worker was not heard of to somebody else, and sweeps a
// little of what is over.
func (t *tx) Reap() (int, error) {
	now := t.Now()
	n, err := t.execStatement("reaping tasks", `
		UPDATE tasks SET state = 'ready', attempt = attempt + 1,
			wake_at = 0, dispatches = 0, dispatch_after = 0, lease_until = 0, last_error = 'lease ended'
		WHERE state = 'running' AND lease_until < ?`, toMicros(now))
	if err != nil {
		return 0, err
	}
	_, err = t.execStatement("sweeping finished tasks", sweepDone, toMicros(now.Add(-keepDone)))
	if err != nil {
		return 0, err
	}
	_, err = t.execStatement("sweeping stored answers", sweepReplays, toMicros(now.Add(-keepReplays)))
	if err != nil {
		return 0, err
	}
	_, err = t.execStatement("sweeping plans", sweepPlans, toMicros(now.Add(-keepPlans)))
	return int(n), err
}

// updateTasks runs an UPDATE that returns task rows.
func (t *tx) updateTasks(doing, statement string, args ...any) ([]ledger.Task, error) {
	t.writes++
	tasks, err := listRows[taskRow](t.newQuery().Raw(statement, args...), doing)
	if err != nil {
		return nil, t.failWith(err)
	}
	return tasks, nil
}

func (r *reader) Task(id string) (ledger.Task, error) {
	return readRow[taskRow](r.newQuery().Where("id = ?", id), "reading task "+id)
}

func (r *reader) Pending(kind, subject string) (bool, error) {
	var found []string
	err := r.newQuery().Raw(
		"SELECT id FROM tasks WHERE subject = ? AND kind = ? AND state IN ('ready', 'running') LIMIT 1", subject, kind).
		Scan(&found).Error
	return len(found) > 0, wrapError("looking for open tasks", err)
}

func (r *reader) Tasks() (map[ledger.TaskState]int, error) {
	var rows []struct {
		State string `gorm:"column:state"`
		N     int    `gorm:"column:n"`
	}
	err := r.newQuery().Raw("SELECT state, COUNT(*) AS n FROM tasks GROUP BY state").Scan(&rows).Error
	counts := make(map[ledger.TaskState]int, len(rows))
	for _, row := range rows {
		counts[ledger.TaskState(row.State)] = row.N
	}
	return counts, wrapError("counting tasks", err)
}

// Failing reads the tasks that failed so often in a row, those that failed most first.
func (r *reader) Failing(atLeast int) ([]ledger.Task, error) {
	return listRows[taskRow](r.newQuery().Where("failures > 0 AND failures >= ?",
		atLeast).Order("failures DESC, id").Limit(maxFailing),
		"reading what fails again and again")
}

// maxFailing bounds how many are told of: with so many, any will do.
const maxFailing = 500

// NextTask is when the first ready row may be dispatched: not before it is to
// run, and not again within its window.
func (r *reader) NextTask() (time.Time, error) {
	var first []struct {
		RunAt         int64 `gorm:"column:run_at"`
		DispatchAfter int64 `gorm:"column:dispatch_after"`
	}
	err := r.newQuery().Raw(`
		SELECT run_at, dispatch_after FROM tasks WHERE state = 'ready' AND run_at > 0 ORDER BY run_at LIMIT ` + strconv.Itoa(nextTaskLimit)).Scan(&first).Error
	if err != nil {
		return time.Time{}, wrapError("looking for the next task", err)
	}
	next := int64(math.MaxInt64)
	for _, t := range first {
		if t.RunAt >= next {
			return toTime(next), nil // whatever follows runs no sooner
		}
		next = min(next, max(t.RunAt, t.DispatchAfter))
	}
	if len(first) == 0 {
		return time.Time{}, nil
	}
	if len(first) < nextTaskLimit {
		return toTime(next), nil
	}
	return r.scanNextTask()
}

// LateSince reads the two indexes by which tasks are dispatched and reaped. When a
// row was sent does not count: a queue that loses everything is late as well.
func (r *reader) LateSince() (at time.Time, working bool, err error) {
	var found struct {
		Due    int64 `gorm:"column:due"`
		Silent int64 `gorm:"column:silent"`
		Heard  int64 `gorm:"column:heard"`
	}
	err = r.newQuery().Raw(`
		SELECT COALESCE((SELECT MIN(run_at) FROM tasks WHERE state = 'ready' AND run_at > 0), 0) AS due,
			COALESCE((SELECT MIN(lease_until) FROM tasks WHERE state = 'running'), 0) AS silent,
			COALESCE((SELECT MAX(lease_until) FROM tasks WHERE state = 'running'), 0) AS heard`).Scan(&found).Error
	first := found.Due
	if first == 0 || found.Silent != 0 && found.Silent < first {
		first = found.Silent
	}
	return toTime(first), found.Heard > toMicros(r.Now()), wrapError("looking for the oldest work", err)
}

// nextTaskLimit is how many tasks NextTask looks at before it looks at all: every
// live machine has one that waits, and the first is nearly always due first.
const nextTaskLimit = 16

func (r *reader) scanNextTask() (time.Time, error) {
	var first int64
	err := r.newQuery().Raw(`
		SELECT MIN(CASE WHEN dispatch_after > run_at THEN dispatch_after ELSE run_at END)
		FROM tasks WHERE state = 'ready' AND run_at > 0`).Scan(&first).Error
	return toTime(first), wrapError("looking for the next task", err)
}
