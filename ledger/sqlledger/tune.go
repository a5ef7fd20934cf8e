package sqlledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sessionTuning is for statements that read few rows by an index. To compile one, or to
// start processes that share its work, takes longer than the statement itself.
// Parameters in the URL take precedence.
var sessionTuning = []string{"jit", "max_parallel_workers_per_gather"}

// tuneSession turns off what is made for large queries. It is a statement and no
// parameter of the start, since connection poolers refuse those that they do not know.
func tuneSession(ctx context.Context, conn *pgx.Conn) error {
	params := conn.Config().RuntimeParams
	var list []string
	for _, name := range sessionTuning {
		if _, set := params[name]; !set && !strings.Contains(params["options"], name) {
			list = append(list, fmt.Sprintf("set_config('%s', '0', false)", name))
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
