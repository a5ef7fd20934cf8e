package sqlledger_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "ledger.db", "mysql://u:hunter2@h/d", "sqlite:///no/such/folder/x.db",
		"postgres://u:hunter2@127.0.0.1:1/d?connect_timeout=1", "postgres://u:hunter2@h:port/d",
	} {
		_, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// TestTheFileIsPrivate: it holds what people reserved and the hashes of keys.
func TestTheFileIsPrivate(t *testing.T) {
	t.Parallel()
	url := inFile(t)
	openSQLite(t, url)
	info, err := os.Stat(strings.TrimPrefix(url, "sqlite://"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestProcessesShareAFile: a command beside a running server waits for its turn.
func TestProcessesShareAFile(t *testing.T) {
	t.Parallel()
	url := inFile(t)
	stores := []*sqlledger.Store{openSQLite(t, url), openSQLite(t, url)}
	create := ledger.Pool{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}
	require.NoError(t, saveChange(t, stores[0], ledger.Change{Pools: []ledger.Pool{create}}))
	const each = 20
	failures := make(chan error, 2*each)
	var group sync.WaitGroup
	for _, store := range stores {
		group.Go(func() {
			for range each {
				failures <- store.InTx(t.Context(), func(tx ledger.Tx) error {
					locked, err := tx.Lock(ledger.LockRequest{Pools: []string{"pol_1"}})
					if err != nil {
						return err
					}
					locked.Pools[0].Failures++
					return tx.Save(ledger.Change{Pools: locked.Pools})
				})
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Equal(t, 2*each, listPools(t, stores[1])[0].Failures)
}

// TestLogsHoldNoValues: the log names a statement that failed without its values.
func TestLogsHoldNoValues(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{
		URL: "sqlite://:memory:", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, store.Migrate(t.Context()))
	key := ledger.Key{ID: "key_1", Kind: ledger.PersonKey, Role: "king", Name: "hunter2", Last4: "hunter2"}
	require.Error(t, saveChange(t, store, ledger.Change{Keys: []ledger.Key{key}}))
	require.Contains(t, log.String(), "api_keys")
	require.NotContains(t, log.String(), "hunter2")
	log.Reset()
	pool := ledger.Pool{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}
	require.ErrorIs(t, saveChange(t, store, ledger.Change{Pools: []ledger.Pool{pool, pool}}), ledger.ErrTaken)
	require.Empty(t, log.String(), "a name that is taken is no fault")
}
