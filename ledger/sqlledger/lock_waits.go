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

// What PostgreSQL ends by itself, so that a process that is paused or cut off in
// the middle of a transaction holds up the others for seconds at most. A request
// has 15 s. Parameters in the URL take precedence.
var sessionTimeouts = map[string]string{
	"lock_timeout":                        "250ms", // after that a verb waits in line: see ledger's gates
	"statement_timeout":                   "10s",
	"idle_in_transaction_session_timeout": "5s",
}

// addTimeouts adds the time-outs that the URL does not set.
func addTimeouts(config *pgx.ConnConfig) {
	for name, value := range sessionTimeouts {
		_, set := config.RuntimeParams[name]
		if !set && !strings.Contains(config.RuntimeParams["options"], name) {
			config.RuntimeParams[name] = value
		}
	}
}

// withoutTimeouts removes them: a migration takes as long as it takes.
func withoutTimeouts(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	for name := range sessionTimeouts {
		delete(config.RuntimeParams, name)
	}
	return config
}

// setLockTimeout makes the transaction wait up to d for each lock.
func setLockTimeout(d time.Duration) statement {
	return statement{
		doing: "setting the lock time-out", text: "SELECT set_config('lock_timeout', $1::text, true)",
		args: [][]byte{[]byte(fmt.Sprintf("%dms", d.Milliseconds()))},
	}
}

// lockTarget names the table and the column by which verbs lock rows.
type lockTarget struct{ table, column string }

var (
	organizationTarget = lockTarget{"organizations", "id"}
	poolTarget         = lockTarget{"pools", "id"}
	taskTarget         = lockTarget{"tasks", "key"}
)

// selectRows selects those of the ids that exist; locking says how they are locked.
func (l lockTarget) selectRows(ids []string, locking string, into *[]string) statement {
	return statement{
		doing: "looking at " + l.table, args: [][]byte{textArray(ids)},
		text: "SELECT " + l.column + " FROM " + l.table + " WHERE " + l.column + " = ANY($1::text[]) ORDER BY 1" +
			locking,
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

// Held returns which of the rows somebody else holds. On SQLite nobody holds a row:
// there is one writer.
func (s *Store) Held(ctx context.Context, r ledger.Rows) (ledger.Rows, error) {
	if !s.dialect.batches {
		return ledger.Rows{}, nil
	}
	keys := planKeys(r.Pools)
	var there, free [3][]string
	err := s.runAndRollBack(ctx,
		organizationTarget.selectRows(r.Organizations, "", &there[0]),
		organizationTarget.selectRows(r.Organizations, skipLocked, &free[0]),
		poolTarget.selectRows(r.Pools, "", &there[1]), poolTarget.selectRows(r.Pools, skipLocked, &free[1]),
		taskTarget.selectRows(keys, "", &there[2]), taskTarget.selectRows(keys, skipLocked, &free[2]))
	pools, plans := subtractList(there[1], free[1]), subtractList(there[2], free[2])
	held := ledger.Rows{Organizations: subtractList(there[0], free[0])}
	for _, id := range r.Pools {
		if slices.Contains(pools, id) || slices.Contains(plans, ledger.PlanKey(id)) {
			held.Pools = append(held.Pools, id)
		}
	}
	return held, err
}

// Await waits until it has locked the rows, and lets them go.
func (s *Store) Await(ctx context.Context, r ledger.Rows) error {
	if !s.dialect.batches {
		return nil
	}
	patience := defaultLockWait
	if deadline, ok := ctx.Deadline(); ok {
		//nolint:forbidigo // a context ends by the machine's clock
		patience = max(time.Until(deadline), time.Millisecond)
	}
	var got []string
	return s.runAndRollBack(ctx, setLockTimeout(patience),
		organizationTarget.selectRows(r.Organizations, forUpdate, &got),
		poolTarget.selectRows(r.Pools, forUpdate, &got),
		taskTarget.selectRows(planKeys(r.Pools), forUpdate, &got))
}

// defaultLockWait is how long Await waits when its caller does not say.
const defaultLockWait = 8 * time.Second

// runAndRollBack runs statements in a transaction that changes nothing.
func (s *Store) runAndRollBack(ctx context.Context, list ...statement) error {
	session, _, err := s.newSession(ctx)
	if err != nil {
		return err
	}
	defer session.close(ctx)
	return session.runStatements(ctx, list...)
}

func planKeys(pools []string) []string {
	keys := make([]string, len(pools))
	for i, id := range pools {
		keys[i] = ledger.PlanKey(id)
	}
	return keys
}

// subtractList returns the strings of a list that are not in another.
func subtractList(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
