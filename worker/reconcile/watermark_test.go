package reconcile_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/worker/reconcile"
)

func (s *site) newWatermark(path string) *reconcile.Watermark {
	return reconcile.NewWatermark(s.ledger, path, slog.New(slog.NewTextHandler(s.log, nil)))
}

// The same installation, from a backup: it must not act on what it believes.
func TestAShorterJournalIsARestoredBackup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "journal.mark")
	restored, later := newSite(t), newSite(t) // the same ids: the same installation at two times
	_, err := later.ledger.BeginRecovery(t.Context(), ledger.SystemActor("test"), "", "one event more")
	require.NoError(t, err)
	require.NoError(t, later.newWatermark(path).Step(t.Context()))
	require.NoError(t, later.newWatermark(path).Step(t.Context()), "a restart of the same changes nothing")

	require.NoError(t, restored.newWatermark(path).Step(t.Context()))
	require.True(t, restored.readRecovery().Active())
	require.Contains(t, restored.readRecovery().Reason, "restored from a backup")
	require.Contains(t, restored.log.String(), "pools=1")
	restored.log.Reset()
	_, err = later.ledger.EndRecovery(t.Context(), ledger.SystemActor("test"))
	require.NoError(t, err)
	require.NoError(t, later.newWatermark(path).Step(t.Context()))
	require.NoError(t, restored.newWatermark(path).Step(t.Context()))
	require.Contains(t, restored.log.String(), "pools=1", "also where another process was first")
	_, err = restored.ledger.EndRecovery(t.Context(), ledger.SystemActor("test"))
	require.NoError(t, err)
	require.NoError(t, restored.newWatermark(path).Step(t.Context()),
		"it was looked at, and the mark went back with it")
	require.False(t, restored.readRecovery().Active())
}

func TestTheMarkFollowsTheJournal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "journal.mark")
	mark := s.newWatermark(path)
	require.NoError(t, mark.Step(t.Context()))
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
	require.NoError(t, s.newWatermark(path).Step(t.Context()))
	require.False(t, s.readRecovery().Active())
	require.NoError(t, os.WriteFile(path, []byte(`{"first`), 0o600))
	require.ErrorContains(t, s.newWatermark(path).Step(t.Context()), "move it away")
}

// What was committed in the last moment before the end counts, and so does a
// restore under a process that runs.
func TestTheMarkIsNeverOlderThanASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal.mark")
		restored, s := newSite(t), newSite(t)
		mark := s.newWatermark(path)
		ctx, cancel := context.WithCancel(t.Context())
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() { defer close(ended); mark.Run(ctx, func() { close(begun) }) }()
		<-begun
		step := func(reason string) string {
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = s.ledger.BeginRecovery(t.Context(), ledger.SystemActor("test"), "", reason)
			require.NoError(t, err)
			_, err = s.ledger.EndRecovery(t.Context(), ledger.SystemActor("test"))
			require.NoError(t, err)
			return string(before)
		}
		before := step("one")
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotEqual(t, before, string(after))
		before = step("two")
		cancel()
		<-ended
		mark.Finish(ctx)
		after, err = os.ReadFile(path)
		require.NoError(t, err)
		require.NotEqual(t, before, string(after))

		require.NoError(t, restored.newWatermark(path).Step(t.Context()))
		require.True(t, restored.readRecovery().Active())
	})
}

// Somebody who has not compared yet must not lower the mark when told to end.
func TestTheLastMarkNeedsAFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "journal.mark")
	s.newWatermark(path).Finish(t.Context())
	require.NoFileExists(t, path)
}
