//go:build services

package proof_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
)

// createPostgres makes an empty database that is dropped when the test ends, and
// returns its URL.
func createPostgres(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(os.Getenv("FOREWARM_TEST_POSTGRES"))
	require.NoError(t, err)
	require.NotEmpty(t, address.Host, "FOREWARM_TEST_POSTGRES must name a server on which databases may be made")
	name := "forewarm_proof_" + strings.ReplaceAll(ids.UUID{}.New("tst"), "_", "")
	server := address.String()
	runStatements(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { runStatements(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	address.Path = "/" + name
	return address.String()
}

func runStatements(t *testing.T, address string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup's t.Context is over
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	require.NoError(t, err)
	for _, statement := range statements {
		_, err = conn.Exec(ctx, statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, conn.Close(ctx))
}

// TestLinearizablePostgres: two servers on one PostgreSQL.
func TestLinearizablePostgres(t *testing.T) {
	t.Parallel()
	testLinearizable(t, createPostgres(t), 2)
}

// TestEdgePostgres: one server, and two at once, on one PostgreSQL.
func TestEdgePostgres(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]int{"one server": 1, "two servers": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atTheEdge(t, createPostgres(t), servers)
		})
	}
}

// TestBatchesPostgres: two servers on one PostgreSQL.
func TestBatchesPostgres(t *testing.T) {
	t.Parallel()
	testBatches(t, createPostgres(t), 2)
}
