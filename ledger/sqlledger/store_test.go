package sqlledger_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
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
		"sqlite://" + filepath.Join(t.TempDir(), "x.db") + "?mode=ro",
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

// TestOptionsAreRefused: they would become part of the file's name.
func TestOptionsAreRefused(t *testing.T) {
	t.Parallel()
	url := inFile(t) + "?mode=ro&password=hunter2"
	_, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url})
	require.ErrorContains(t, err, "write sqlite:///path alone")
	require.NotContains(t, err.Error(), "hunter2")
	require.NoFileExists(t, strings.TrimPrefix(url, "sqlite://"))
}

// TestReadOnly: who only looks leaves the file, its log and its folder as they are, beside
// a process that writes, after a crash, and after a clean end.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	url := inFile(t)
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, saveChange(t, store, poolChange("pol_1")))
	path := strings.TrimPrefix(url, "sqlite://")
	lookOnly(t, path)
	crashed := t.TempDir()
	require.NoError(t, os.CopyFS(crashed, os.DirFS(filepath.Dir(path))))
	require.FileExists(t, filepath.Join(crashed, filepath.Base(path)+"-wal"))
	lookOnly(t, filepath.Join(crashed, filepath.Base(path)))
	require.NoError(t, store.Close())
	require.Len(t, filesIn(t, filepath.Dir(path)), 1)
	lookOnly(t, path)

	_, err = sqlledger.Open(t.Context(), sqlledger.Config{URL: inFile(t), ReadOnly: true})
	require.Error(t, err, "there is nothing to look at")
}

func poolChange(id string) ledger.Change {
	return ledger.Change{Pools: []ledger.Pool{{Pool: capacity.Pool{ID: id, Name: id, PerNode: 8}}}}
}

// lookOnly reads what was committed, fails to write, and sees that nothing has changed.
func lookOnly(t *testing.T, path string) {
	t.Helper()
	before := filesIn(t, filepath.Dir(path))
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://" + path, ReadOnly: true})
	require.NoError(t, err)
	have, want, err := store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, have)
	require.Len(t, listPools(t, store), 1)
	require.Error(t, saveChange(t, store, poolChange("pol_2")))
	require.NoError(t, store.Close())
	require.Equal(t, before, filesIn(t, filepath.Dir(path)))
}

// filesIn are a folder's files by name, without what readers of a database share.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		if strings.HasSuffix(entry.Name(), "-shm") {
			text = nil
		}
		found[entry.Name()] = string(text)
	}
	return found
}
