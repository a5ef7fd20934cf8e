package sqlledger

import (
	"math"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// taskReader reads the rows of tasks.
type taskReader struct{ *connection }

func (r taskReader) Task(id string) (ledger.Task, error) {
	return readRow[taskRow](r.newQuery().Where("id = ?", id), "reading task "+id)
}

func (r taskReader) Pending(kind, subject string) (bool, error) {
	var found []string
	err := r.newQuery().Raw(
		"SELECT id FROM tasks WHERE subject = ? AND kind = ? AND state IN ('ready', 'running') LIMIT 1", subject, kind).
		Scan(&found).Error
	return len(found) > 0, wrapError("looking for open tasks", err)
}

func (r taskReader) Tasks() (map[ledger.TaskState]int, error) {
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

// Failing reads the tasks that have failed at least so often in a row, those that
// failed most first.
func (r taskReader) Failing(atLeast int) ([]ledger.Task, error) {
	return listRows[taskRow](r.newQuery().Where("failures > 0 AND failures >= ?",
		atLeast).Order("failures DESC, id").Limit(maxFailing),
		"reading what fails again and again")
}

// maxFailing bounds how many failing tasks are listed: with so many, any will do.
const maxFailing = 500

// NextTask returns when the first ready row may be dispatched: not before it is to
// run, and not again within its window.
func (r taskReader) NextTask() (time.Time, error) {
	var first []struct {
		RunAt         int64 `gorm:"column:run_at"`
		DispatchAfter int64 `gorm:"column:dispatch_after"`
	}
	err := r.newQuery().Raw(`
		SELECT run_at, dispatch_after FROM tasks WHERE state = 'ready' AND run_at > 0 ORDER BY run_at LIMIT ` +
		strconv.Itoa(nextTaskLimit)).Scan(&first).Error
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

// nextTaskLimit is how many tasks NextTask reads before it reads them all. Every
// live node has one that waits, and the first is nearly always due first.
const nextTaskLimit = 16

func (r taskReader) scanNextTask() (time.Time, error) {
	var first int64
	err := r.newQuery().Raw(`
		SELECT MIN(CASE WHEN dispatch_after > run_at THEN dispatch_after ELSE run_at END)
		FROM tasks WHERE state = 'ready' AND run_at > 0`).Scan(&first).Error
	return toTime(first), wrapError("looking for the next task", err)
}

// LateSince reads the two indexes by which tasks are dispatched and reaped. It does
// not matter when a row was sent: a queue that loses everything is late as well.
func (r taskReader) LateSince() (at time.Time, working bool, err error) {
	var found struct {
		Due    int64 `gorm:"column:due"`
		Silent int64 `gorm:"column:silent"`
		Lease  int64 `gorm:"column:lease"`
	}
	err = r.newQuery().Raw(`
		SELECT COALESCE((SELECT MIN(run_at) FROM tasks WHERE state = 'ready' AND run_at > 0), 0) AS due,
			COALESCE((SELECT MIN(lease_until) FROM tasks WHERE state = 'running'), 0) AS silent,
			COALESCE((SELECT MAX(lease_until) FROM tasks WHERE state = 'running'), 0) AS lease`).Scan(&found).Error
	first := found.Due
	if first == 0 || found.Silent != 0 && found.Silent < first {
		first = found.Silent
	}
	return toTime(first), found.Lease > toMicros(r.Now()), wrapError("looking for the oldest work", err)
}
