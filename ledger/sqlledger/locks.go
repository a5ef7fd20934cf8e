package sqlledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/ledger"
)

// What PostgreSQL ends by itself, so that a process that is paused, or cut off,
// in the middle of a transaction holds the others up for seconds at most. A
// request has 15 s. The URL's own parameters come first.
var bounds = map[string]string{
	"lock_timeout":                        "250ms", // then a verb waits beside the others: see ledger's gates
	"statement_timeout":                   "10s",
	"idle_in_transaction_session_timeout": "5s",
}

// bounded adds the bounds that the URL does not set.
func bounded(config *pgx.ConnConfig) {
	for name, value := range bounds {
		_, set := config.RuntimeParams[name]
		if !set && !strings.Contains(config.RuntimeParams["options"], name) {
			config.RuntimeParams[name] = value
		}
	}
}

// unbounded removes them: migrating takes as long as it takes.
func unbounded(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	for name := range bounds {
		delete(config.RuntimeParams, name)
	}
	return config
}

// lockTimeout has the transaction wait for each lock as long as d.
func lockTimeout(d time.Duration) statement {
	return statement{
		doing: "setting the lock time-out", text: "SELECT set_config('lock_timeout', $1::text, true)",
		args: [][]byte{[]byte(fmt.Sprintf("%dms", d.Milliseconds()))},
	}
}

// lockableRows names a table's rows that verbs hold, by a column.
type lockableRows struct{ table, column string }

var (
	ofOrganizations = lockableRows{"organizations", "id"}
	ofPools         = lockableRows{"pools", "id"}
	ofTasks         = lockableRows{"tasks", "key"}
)

// read selects those of ids that there are, locked as rest says.
func (l lockableRows) read(ids []string, rest string, into *[]string) statement {
	return statement{
		doing: "looking at " + l.table, args: [][]byte{wordArray(ids)},
		text: "SELECT " + l.column + " FROM " + l.table + " WHERE " + l.column + " = ANY($1::text[]) ORDER BY 1" + rest,
		receive: func(values [][]byte) error {
			*into = append(*into, string(values[0]))
			return nil
		},
	}
}

// How rows are locked, or passed over.
const (
	forUpdate  = " FOR NO KEY UPDATE"
	skipLocked = forUpdate + " SKIP LOCKED"
)

// Held asks which rows there are and which are free. On SQLite nobody holds a
// row: there is one writer.
func (s *Store) Held(ctx context.Context, r ledger.Rows) (ledger.Rows, error) {
	if !s.dialect.batches {
		return ledger.Rows{}, nil
	}
	keys := planKeys(r.Pools)
	var there, free [3][]string
	err := s.glance(ctx,
		ofOrganizations.read(r.Organizations, "", &there[0]),
		ofOrganizations.read(r.Organizations, skipLocked, &free[0]),
		ofPools.read(r.Pools, "", &there[1]), ofPools.read(r.Pools, skipLocked, &free[1]),
		ofTasks.read(keys, "", &there[2]), ofTasks.read(keys, skipLocked, &free[2]))
	pools, plans := without(there[1], free[1]), without(there[2], free[2])
	held := ledger.Rows{Organizations: without(there[0], free[0])}
	for _, id := range r.Pools {
		if slices.Contains(pools, id) || slices.Contains(plans, ledger.PlanKey(id)) {
			held.Pools = append(held.Pools, id)
		}
	}
	return held, err
}

// Await locks the rows and lets go.
func (s *Store) Await(ctx context.Context, r ledger.Rows) error {
	if !s.dialect.batches {
		return nil
	}
	patience := statementTime
	if deadline, ok := ctx.Deadline(); ok {
		//nolint:forbidigo // a context ends by the machine's clock
		patience = max(time.Until(deadline), time.Millisecond)
	}
	var got []string
	return s.glance(ctx, lockTimeout(patience), ofOrganizations.read(r.Organizations, forUpdate, &got),
		ofPools.read(r.Pools, forUpdate, &got), ofTasks.read(planKeys(r.Pools), forUpdate, &got))
}

// statementTime is how long Await waits when its caller does not say.
const statementTime = 8 * time.Second

// glance runs statements in a transaction of which nothing stays.
func (s *Store) glance(ctx context.Context, list ...statement) error {
	session, _, err := s.newSession(ctx)
	if err != nil {
		return err
	}
	defer session.close(ctx)
	return session.run(ctx, list...)
}

func planKeys(pools []string) []string {
	keys := make([]string, len(pools))
	for i, id := range pools {
		keys[i] = ledger.PlanKey(id)
	}
	return keys
}

// without returns the strings of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
