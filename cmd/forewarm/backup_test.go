package main_test

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // opens the database beside its server, as a backup does

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// holdGPUs allocates GPUs and waits until it has them.
func holdGPUs(t *testing.T, api *client.Client, req contract.AllocationCreate) (id string) {
	t.Helper()
	a, err := api.Allocate(t.Context(), req, client.Options{})
	require.NoError(t, err)
	eventually(t, patience, func() string {
		a, err = api.Allocation(t.Context(), a.ID)
		require.NoError(t, err)
		if a.State != "active" {
			return a.State
		}
		return ""
	})
	return a.ID
}

// A backup of one file, taken while it runs, is enough for an embedded installation:
// put back beside what the data directory remembers, it hands nothing out until
// somebody confirms.
func TestABackupOfAnEmbeddedInstallation(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	p, d, api := h.startUp(t, "--config", h.configFile())
	one := contract.AllocationCreate{Pool: loadPool, GPUs: 1, LeaseSeconds: 3600}
	restart := func(between func()) {
		require.Zero(t, p.stop(t, ending), p.errors.String())
		d.close()
		between()
		p = h.start(t, nil, "up", "--config", h.configFile())
		d.open(t, p.awaitAddress(t))
	}
	database, backup := filepath.Join(h.dataDir(), "forewarm.db"), filepath.Join(h.dir, "backup.db")

	holdGPUs(t, api, one)
	running, err := sql.Open("sqlite", database)
	require.NoError(t, err)
	_, err = running.ExecContext(t.Context(), "VACUUM INTO ?", backup)
	require.NoError(t, err)
	require.NoError(t, running.Close())
	restart(func() {
		log, err := os.Stat(database + "-wal")
		require.True(t, err != nil || log.Size() == 0, "all of a stopped installation is in one file")
	})
	lost := holdGPUs(t, api, one)
	restart(func() { copyFile(t, backup, database) })

	_, err = api.Allocation(t.Context(), lost)
	require.ErrorContains(t, err, lost)
	var told *client.Error
	_, err = api.Allocate(t.Context(), one, client.Options{})
	require.ErrorAs(t, err, &told)
	require.Equal(t, contract.CodeRecovering, told.Problem.Code)
	_, err = api.AcceptJournal(t.Context())
	require.NoError(t, err)
	_, err = api.ConfirmRecovery(t.Context())
	require.NoError(t, err)
	holdGPUs(t, api, one)
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, fs.FileMode(0o600)))
}
