//go:build services

package sqlledger_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/ledgertest"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// serverAddress names a PostgreSQL server on which the tests may make databases.
func serverAddress(t testing.TB) string {
	t.Helper()
	address := os.Getenv("FOREWARM_TEST_POSTGRES")
	require.NotEmpty(t, address, "FOREWARM_TEST_POSTGRES must name a server on which databases may be made")
	return address
}

// createDatabase makes an empty database that is dropped when the test ends, and
// returns its URL.
func createDatabase(t testing.TB) string {
	t.Helper()
	name := "forewarm_" + strings.ReplaceAll(ids.UUID{}.New("tst"), "_", "")
	execAdmin(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { execAdmin(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	address, err := url.Parse(serverAddress(t))
	require.NoError(t, err)
	address.Path = "/" + name
	return address.String()
}

func execAdmin(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup's t.Context is over
	defer cancel()
	conn, err := pgx.Connect(ctx, serverAddress(t))
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

func openPostgres(t testing.TB) *sqlledger.Store {
	t.Helper()
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{
		URL: createDatabase(t), MaxConns: 8, Clock: clock.NewManual(start.AddDate(-9, 0, 0)), // it must not be asked
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	return store
}

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t *testing.T) ledger.Store { return openPostgres(t) })
}

// TestEventsWaitForTheirElders: an event is held back while an older transaction,
// which began to write earlier, has not committed.
func TestEventsWaitForTheirElders(t *testing.T) {
	t.Parallel()
	store := openPostgres(t)
	written, release := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	tell := func(subject string) ledger.Change {
		return ledger.Change{Events: []ledger.Event{{Type: "test", Subject: subject}}}
	}
	go func() {
		slow <- store.InTx(context.Background(), func(tx ledger.Tx) error {
			err := tx.Save(tell("elder"))
			close(written)
			<-release
			return err
		})
	}()
	<-written
	require.NoError(t, saveChange(t, store, tell("younger")))
	require.Empty(t, listEvents(t, store), "the elder may still appear before it")
	close(release)
	require.NoError(t, <-slow)
	require.Eventually(t, func() bool { return len(listEvents(t, store)) == 2 }, time.Minute, time.Millisecond)
	require.Equal(t, "elder", listEvents(t, store)[0].Subject)
}

// TestPostgresTellsTheTime: leases and expiry go by one clock, not by each
// process's own.
func TestPostgresTellsTheTime(t *testing.T) {
	t.Parallel()
	store := openPostgres(t)
	require.NoError(t, store.Read(t.Context(), func(r ledger.Reader) error {
		require.Greater(t, r.Now().Year(), start.Year()-5, "the Clock stands nine years back")
		return nil
	}))
}

// TestPostgresMigratesOnce: instances that start together wait for each other.
func TestPostgresMigratesOnce(t *testing.T) {
	t.Parallel()
	address := createDatabase(t)
	outcomes := make(chan error, 4)
	for range cap(outcomes) {
		go func() {
			store, err := sqlledger.Open(context.Background(), sqlledger.Config{URL: address})
			if err == nil {
				err = store.Migrate(context.Background())
				_ = store.Close()
			}
			outcomes <- err
		}()
	}
	for range cap(outcomes) {
		require.NoError(t, <-outcomes)
	}
}

// How long, and how often, a test looks for what another goroutine does.
const (
	patience = time.Minute
	tick     = 2 * time.Millisecond
)

// countLockWaits asks how many connections to the current database wait for a lock.
const countLockWaits = "SELECT count(*) FROM pg_stat_activity " +
	"WHERE datname = current_database() AND wait_event_type = 'Lock'"

// countWaiting counts the connections to a database that wait for a lock.
func countWaiting(t *testing.T, address string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	n := 0
	require.NoError(t, conn.QueryRow(t.Context(), countLockWaits).Scan(&n))
	require.NoError(t, conn.Close(t.Context()))
	return n
}
