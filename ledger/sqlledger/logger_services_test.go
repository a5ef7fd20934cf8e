//go:build services

package sqlledger_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// TestWhoeverGivesUpIsNotLogged: a task that ends gives up what renews its lease, which closes the connection; what
// else the transaction would have done finds it closed.
func TestWhoeverGivesUpIsNotLogged(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	var lines bytes.Buffer
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: address, MaxConns: 2,
		Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	locked, err := openInstance(t, address).DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = locked.ExecContext(t.Context(), "LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = store.InTx(ctx, func(tx ledger.Tx) error {
		g := ledger.Guard{TaskID: "tsk_1", Fence: 1}
		return errors.Join(tx.Extend(g, time.Minute), tx.Extend(g, time.Minute))
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, locked.Rollback())
	require.Empty(t, lines.String())
}
