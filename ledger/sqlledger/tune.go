package sqlledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sessionTuning is for statements that read few rows by an index. To compile one, or to
// start processes that share its work, takes longer than the statement itself. Where PostgreSQL
// takes a random page to cost four times as much as the next one, as on a disk that turns, it plans
// to read new tables to their end, and goes on with that plan when they have grown.
// Parameters in the URL take precedence.
var sessionTuning = []struct{ name, value string }{
	{"jit", "0"}, {"max_parallel_workers_per_gather", "0"}, {"random_page_cost", "1.1"},
}

// tuneSession makes settings of a session. It is a statement and no parameter of the start,
// since connection poolers refuse those that they do not know.
func tuneSession(ctx context.Context, conn *pgx.Conn) error {
	params := conn.Config().RuntimeParams
	var list []string
	for _, s := range sessionTuning {
		if _, set := params[s.name]; !set && !strings.Contains(params["options"], s.name) {
			list = append(list, fmt.Sprintf("set_config('%s', '%s', false)", s.name, s.value))
		}
	}
	if len(list) == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, "SELECT "+strings.Join(list, ", ")); err != nil {
		return fmt.Errorf("tuning a connection: %w", err)
	}
	return nil
}
