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
	t.assumptions = &assumptions{organizations: checkNumbers(checkedVersions, organizations, versions),
		pools: checkNumbers(checkedRevisions, a.Pools, held), all: t.checkRevisions(all, revisions)}
	if len(a.Pools) == 1 {
		t.assumptions.pool, t.assumptions.revision = a.Pools[0], held[0]
	}
	t.markHeld(ledger.Locked{Organizations: a.Organizations})
	for _, id := range a.Pools {
		t.held[id] = true
	}
	return true
}

// assumptions are the checks that come before the first write.
type assumptions struct {
	organizations, pools []statement
	all                  statement // of the revisions of all pools, and the time
	pool                 string    // the only one that is held; empty: there are more, or none
	revision             int64     // of that one
}

// listed are the checks as statements of their own.
func (a *assumptions) listed() []statement {
	return append(slices.Concat(a.organizations, a.pools), a.all)
}

// numberCheck is how rows are locked whose number is remembered.
type numberCheck struct{ table, one, many string }

var (
	checkedVersions  = numberCheckOf("organizations", "version")
	checkedRevisions = numberCheckOf("pools", "revision")
)

func numberCheckOf(table, column string) numberCheck {
	return numberCheck{
		table: table,
		one: "SELECT 1 / count(*)::int FROM (SELECT 1 FROM " + table + " WHERE id = $1 AND " + column +
			" = $2 FOR NO KEY UPDATE) AS held",
		many: "SELECT 1 / (count(*) = $3)::int FROM (SELECT 1 FROM " + table +
			" AS r JOIN unnest($1::text[], $2::bigint[]) AS k (id, n)" +
			" ON r.id = k.id AND r." + column + " = k.n ORDER BY r.id FOR NO KEY UPDATE OF r) AS held",
	}
}

// checkNumbers locks rows in the order of their ids, and fails unless each still
// has the number that this process remembers. PostgreSQL checks the condition again
// on a row that it had to wait for, so a change made meanwhile is seen. Few rows have a
// statement each, which is planned only once.
func checkNumbers(c numberCheck, ids []string, numbers []int64) []statement {
	doing := "checking what is remembered of " + c.table
	if len(ids) > maxSingleRows {
		return []statement{{doing: doing, unmet: ledger.ErrStale, text: c.many,
			args: [][]byte{textArray(ids), integerArray(numbers), encodeInteger(int64(len(ids)))}}}
	}
	list := make([]statement, len(ids))
	for i, id := range ids {
		list[i] = statement{doing: doing, unmet: ledger.ErrStale, text: c.one,
			args: [][]byte{[]byte(id), encodeInteger(numbers[i])}}
	}
	return list
}

// What is remembered of all pools, and the estimated time, as conditions.
const (
	// allAsRemembered holds when exactly these pools exist, with these revisions. Lists are
	// compared, and not joined: a plan of that is made once.
	allAsRemembered = `(SELECT COALESCE(array_agg(id ORDER BY id COLLATE "C"), '{}') = $1::text[]
		AND COALESCE(array_agg(revision ORDER BY id COLLATE "C"), '{}') = $2::bigint[] FROM pools)`
	// timeAsEstimated holds when the estimate of the time is right. It is asked after the rows
	// were waited for.
	timeAsEstimated = `abs(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) - $3::bigint) <= $4::bigint`
)

// checkRevisions fails unless all is as remembered. ids are in order.
func (t *tx) checkRevisions(ids []string, revisions []int64) statement {
	return statement{
		doing: "checking the revisions of all pools and the estimated time", unmet: ledger.ErrStale,
		text: "SELECT 1 / (" + allAsRemembered + " AND " + timeAsEstimated + ")::int",
		args: [][]byte{textArray(ids), integerArray(revisions), encodeInteger(toMicros(t.now)),
			encodeInteger(estimateTolerance.Microseconds())},
	}
}

// assumeAndSet checks what is remembered of the only pool that is held, and of all, in
// the statement that sets that pool's revision. What organizations hold in other pools can
// only have become less since their rows were locked, which comes before.
func (a *assumptions) assumeAndSet(c poolChange) []statement {
	set := statement{
		doing: "setting the revision of pool " + c.poolID + " over what is remembered", unmet: ledger.ErrStale,
		text: assumeAndSetText,
		args: append(slices.Clone(a.all.args), []byte(c.poolID), encodeInteger(c.revision), []byte(c.written),
			encodeInteger(a.revision)),
	}
	return append(slices.Clone(a.organizations), set)
}

const assumeAndSetText = `WITH changed AS (UPDATE pools SET revision = $6::bigint, changes = changes + 1
			WHERE id = $5 AND revision = $8::bigint AND ` + allAsRemembered + ` RETURNING id, changes),
		written AS (INSERT INTO pool_changes (pool_id, number, previous, revision, ids)
			SELECT id, changes, $8::bigint, $6::bigint, $7::text FROM changed RETURNING 1)
		SELECT 1 / (count(*) = 1 AND ` + timeAsEstimated + `)::int FROM written`
