package sqlledger

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// ExecBehind runs a statement that no verb would.
func ExecBehind(ctx context.Context, s *Store, statement string) error {
	return s.write.WithContext(ctx).Exec(statement).Error
}

// Heartbeats counts the rows.
func Heartbeats(t *testing.T, s *Store) int {
	t.Helper()
	var n int
	require.NoError(t, s.read.Raw("SELECT COUNT(*) FROM heartbeats").Scan(&n).Error)
	return n
}
