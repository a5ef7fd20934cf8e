//go:build services

package sqlledger_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// TestAnEventIsNotOvertaken: a younger transaction draws a smaller number than an
// older one, and commits later. A reader in between must not skip its event.
func TestAnEventIsNotOvertaken(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	store := openInstance(t, address)
	read := func() (subjects []string) {
		require.NoError(t, store.Read(t.Context(), func(r ledger.Reader) error {
			events, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Type: "overtaken"}, 50)
			for _, e := range events {
				subjects = append(subjects, e.Subject)
			}
			return err
		}))
		return subjects
	}
	begin := func() pgx.Tx {
		conn, err := pgx.Connect(t.Context(), address)
		require.NoError(t, err)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		return tx
	}
	write := func(tx pgx.Tx, subject string) {
		_, err := tx.Exec(t.Context(), `
			INSERT INTO events (organization_id, at, type, subject, pool_id, actor, via, reason, message)
			VALUES ('', 0, 'overtaken', $1, '', '', '', '', '')`, subject)
		require.NoError(t, err)
	}
	older, younger := begin(), begin()
	_, err := older.Exec(t.Context(), "SELECT pg_current_xact_id()")
	require.NoError(t, err)
	write(younger, "first")
	write(older, "second")
	require.NoError(t, older.Commit(t.Context()))
	for range 20 {
		require.Empty(t, read(), "the first event is not there yet")
	}
	require.NoError(t, younger.Commit(t.Context()))
	require.Eventually(t, func() bool { return len(read()) == 2 }, patience, tick)
	require.Equal(t, []string{"first", "second"}, read())
}
