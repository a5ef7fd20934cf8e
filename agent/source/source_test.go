package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func newTail(t *testing.T) (path string, checkpoint *history.Checkpoint, src *tail.Tail) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "app.log")
	checkpoint, err := history.OpenCheckpoint(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	src, err = tail.New(tail.Config{Path: path, Checkpoint: checkpoint})
	require.NoError(t, err)
	return path, checkpoint, src
}

func TestRunHandsOverThenCommitsAndIsWokenByAChange(t *testing.T) {
	t.Parallel()
	path, checkpoint, src := newTail(t)
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines, done := make(chan string), make(chan error, 1)
	go func() {
		done <- source.Run(ctx, source.Runner{
			Source: src, Every: time.Hour,
			Handle: func(_ context.Context, items []source.Item) error {
				for _, i := range items {
					lines <- i.Line.Text
				}
				return nil
			},
		})
	}()
	require.Equal(t, "one", <-lines)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("two\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "two", <-lines, "an hour's polling interval, so only a notification brings it")
	cancel()
	require.NoError(t, <-done)
	require.EqualValues(t, 8, checkpoint.Get(path)[0].Offset)
}

func TestRunCommitsNothingThatWasNotHandled(t *testing.T) {
	t.Parallel()
	path, checkpoint, src := newTail(t)
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	full := errors.New("disk full")
	err := source.Run(context.Background(), source.Runner{
		Source: src, Handle: func(context.Context, []source.Item) error { return full },
	})
	require.ErrorIs(t, err, full)
	require.Empty(t, checkpoint.Get(path))
}

func TestRunReportsFailedStepsAndGoesOn(t *testing.T) {
	t.Parallel()
	path, _, src := newTail(t)
	require.NoError(t, os.Symlink("/etc/passwd", path))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failures := 0
	err := source.Run(ctx, source.Runner{
		Source: src, Every: time.Millisecond,
		Handle: func(context.Context, []source.Item) error { return errors.New("nothing was to be handed over") },
		OnError: func(err error) {
			if failures++; failures == 3 {
				cancel()
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, 3, failures)
}
