package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/ledger"
)

func TestTheNewestSealIsKeptInTheDataDirectory(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := t.TempDir()
	mark := Config{DataDir: dir, Deployment: "x"}.sealMark(slog.New(slog.NewTextHandler(&log, nil)))
	none, err := mark.Load()
	require.NoError(t, err)
	require.Zero(t, none)
	for n := range int64(2) {
		want := ledger.SealMark{Number: n + 1, MAC: "ab", At: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)}
		mark.Save(want)
		got, err := mark.Load()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left over")
	require.Contains(t, mark.Where(), filepath.Join(dir, "seals-x.mark"))
	require.Empty(t, log.String())

	require.NoError(t, os.WriteFile(mark.path, []byte(`{"num`), 0o600))
	_, err = mark.Load()
	require.ErrorContains(t, err, "move it away")
	statefiletest.Block(t, mark.path)
	mark.Save(ledger.SealMark{Number: 1})
	require.Contains(t, log.String(), "could not be noted")
}
