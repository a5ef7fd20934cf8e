package sqlledger

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
)

// Bounds of an estimate of the database's time. It rests on an answer that is at
// most estimateLife old, plus what has passed on this machine's clock since. The
// database refuses it if it is off by more than estimateTolerance, as it is after
// somebody has set this machine's clock.
const (
	estimateLife      = 10 * time.Second
	estimateTolerance = 200 * time.Millisecond
)

// timeEstimate is the time that the database told last, and when it told it.
type timeEstimate struct {
	mu   sync.Mutex
	told time.Time
	at   time.Time // by this machine's clock
}

// setTime keeps the time that the database has just told.
func (e *timeEstimate) setTime(told, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told, e.at = told, at
}

// estimateNow returns the database's time, or false when the database has not told
// it lately.
func (e *timeEstimate) estimateNow(at time.Time) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	age := at.Sub(e.at)
	return toTime(toMicros(e.told.Add(age))), !e.told.IsZero() && age >= 0 && age < estimateLife
}

// Assume spares PostgreSQL a round trip; SQLite has none to spare.
func (t *tx) Assume(a ledger.Assumption) bool {
	if t.session == nil || t.session.begun || t.nested > 0 || !t.now.IsZero() {
		return false
	}
	if _, real := t.store.clock.(clock.System); !real { // a clock of a test says nothing of the database's
		return false
	}
	now, ok := t.store.dbTime.estimateNow(t.store.clock.Now())
	if !ok || now.Before(a.NotBefore) {
		return false
	}
	t.now = now
	var organizations []string
	var versions []int64
	for _, o := range a.Organizations {
		organizations, versions = append(organizations, o.ID), append(versions, int64(o.Version))
	}
	held := make([]int64, len(a.Pools))
	for i, id := range a.Pools {
		held[i] = a.Revisions[id]
	}
	all := slices.Sorted(maps.Keys(a.Revisions))
	revisions := make([]int64, len(all))
	for i, id := range all {
		revisions[i] = a.Revisions[id]
	}
	t.assumptions = []statement{
		checkNumbers("organizations", "version", organizations, versions),
		checkNumbers("pools", "revision", a.Pools, held), t.checkRevisions(all, revisions),
	}
	t.markHeld(ledger.Locked{Organizations: a.Organizations})
	for _, id := range a.Pools {
		t.held[id] = true
	}
	return true
}

// checkNumbers locks rows in the order of their ids, and fails unless each still
// has the number that this process remembers. PostgreSQL checks the condition again
// on a row that it had to wait for, so a change made meanwhile is seen.
func checkNumbers(table, column string, ids []string, numbers []int64) statement {
	return statement{
		doing: "checking what is remembered of " + table, unmet: ledger.ErrStale,
		text: "SELECT 1 / (count(*) = $3)::int FROM (SELECT 1 FROM " + table +
			" AS r JOIN unnest($1::text[], $2::bigint[]) AS k (id, n)" +
			" ON r.id = k.id AND r." + column + " = k.n ORDER BY r.id FOR NO KEY UPDATE OF r) AS held",
		args: [][]byte{textArray(ids), integerArray(numbers), encodeInteger(int64(len(ids)))},
	}
}

// checkRevisions fails unless exactly these pools exist, with these revisions, and the
// estimate of the time is right.
func (t *tx) checkRevisions(ids []string, revisions []int64) statement {
	return statement{
		doing: "checking the revisions of all pools and the estimated time", unmet: ledger.ErrStale,
		text: `SELECT 1 / (count(*) = $3 AND count(k.id) = $3
			AND abs(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) - $4::bigint) <= $5::bigint)::int
			FROM pools AS r LEFT JOIN unnest($1::text[], $2::bigint[]) AS k (id, n)
			ON r.id = k.id AND r.revision = k.n`,
		args: [][]byte{textArray(ids), integerArray(revisions), encodeInteger(int64(len(ids))),
			encodeInteger(toMicros(t.now)), encodeInteger(estimateTolerance.Microseconds())},
	}
}
