package reconcile_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/worker/reconcile"
)

func (s *site) watermark(path string) *reconcile.Watermark {
	return reconcile.NewWatermark(s.ledger, path, slog.New(slog.NewTextHandler(s.log, nil)))
}

// The same installation, from a backup: it must not act on what it believes.
func TestAShorterJournalIsARestoredBackup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "journal.mark")
	restored, later := newSite(t), newSite(t) // the same ids: the same installation at two times
	_, err := later.ledger.BeginRecovery(t.Context(), ledger.SystemActor("test"), "", "one event more")
	require.NoError(t, err)
	require.NoError(t, later.watermark(path).Check(t.Context()))
	require.NoError(t, later.watermark(path).Check(t.Context()), "a restart of the same changes nothing")

	require.NoError(t, restored.watermark(path).Check(t.Context()))
	require.True(t, restored.recovery().Active())
	require.Contains(t, restored.recovery().Reason, "restored from a backup")
	_, err = restored.ledger.EndRecovery(t.Context(), ledger.SystemActor("test"))
	require.NoError(t, err)
	require.NoError(t, restored.watermark(path).Check(t.Context()), "it was looked at, and the mark went back with it")
	require.False(t, restored.recovery().Active())
}

func TestTheMarkFollowsTheJournal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "journal.mark")
	mark := s.watermark(path)
	require.NoError(t, mark.Check(t.Context()))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = s.ledger.BeginRecovery(t.Context(), ledger.SystemActor("test"), "", "one event more")
	require.NoError(t, err)
	require.NoError(t, mark.Step(t.Context()))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, string(before), string(after))
}

// A database that was begun anew in the same place is another one, and a file
// that cannot be read says what to do.
func TestAnotherDatabaseAndADamagedMark(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "journal.mark")
	require.NoError(t, os.WriteFile(path, []byte(`{"first":"org_other","seq":1000000}`), 0o600))
	require.NoError(t, s.watermark(path).Check(t.Context()))
	require.False(t, s.recovery().Active())
	require.NoError(t, os.WriteFile(path, []byte(`{"first`), 0o600))
	require.ErrorContains(t, s.watermark(path).Check(t.Context()), "remove the file")
}
