package tail_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/clock"
)

// bench is one followed file.
type bench struct {
	*testing.T
	path  string
	clock *clock.Manual
	cfg   tail.Config
	tail  *tail.Tail
}

func newBench(t *testing.T, c tail.Config) *bench {
	t.Helper()
	b := &bench{T: t, path: filepath.Join(t.TempDir(), "app.log"), clock: clock.NewManual(time.Unix(1_800_000_000, 0))}
	c.Path, c.Clock = b.path, b.clock
	b.cfg = c
	b.restartAgent()
	t.Cleanup(func() { _ = b.tail.Close() })
	return b
}

// restartAgent makes the agent anew from what is on disk.
func (b *bench) restartAgent() {
	b.Helper()
	checkpoint, err := history.OpenCheckpoint(filepath.Join(filepath.Dir(b.path), "state.json"))
	require.NoError(b, err)
	b.cfg.Checkpoint = checkpoint
	b.tail, err = tail.New(b.cfg)
	require.NoError(b, err)
}

func (b *bench) restartTail() {
	b.Helper()
	require.NoError(b, b.tail.Close())
	b.restartAgent()
}

func (b *bench) appendText(text string) {
	b.Helper()
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(b, err)
	_, err = f.WriteString(text)
	require.NoError(b, err)
	require.NoError(b, f.Close())
}

func (b *bench) readLines() []string {
	b.Helper()
	entries, err := b.tail.Read(context.Background())
	require.NoError(b, err)
	texts := []string{}
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return texts
}

func TestLinesComeOnceTheyAreComplete(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	require.Empty(t, b.readLines(), "a file that is not there yet is no error")
	b.appendText("one\r\ntw")
	require.Equal(t, []string{"one"}, b.readLines())
	require.Empty(t, b.readLines())
	b.appendText("o\n\nfo\x00ur\n")
	require.Equal(t, []string{"two", "", "four"}, b.readLines())
	require.Equal(t, int64(4), b.tail.Stats().Lines)
}

func TestItemsCarryTheSourceAndTheTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{Name: "train"})
	b.appendText("one\n")
	items, err := b.tail.Step(context.Background())
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Nil(t, items[0].Record)
	require.Equal(t, "train", items[0].Line.Source)
	require.Equal(t, "one", items[0].Line.Text)
	require.Equal(t, b.clock.Now(), items[0].Line.At)
}

func TestOnlyCommittedLinesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	b.appendText("one\ntwo\n")
	require.Equal(t, []string{"one", "two"}, b.readLines())
	require.NoError(t, b.tail.Commit())
	b.appendText("three\nfou")
	require.Equal(t, []string{"three"}, b.readLines())
	b.restartTail()
	require.Equal(t, []string{"three"}, b.readLines())
	require.NoError(t, b.tail.Commit())
	b.restartTail()
	b.appendText("r\n")
	require.Equal(t, []string{"four"}, b.readLines())
}

func TestTheRestOfARotatedFileIsRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{Drain: 10 * time.Second})
	b.appendText("one\n")
	require.Equal(t, []string{"one"}, b.readLines())
	writer, err := os.OpenFile(b.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = writer.WriteString("two\n")
	require.NoError(t, err)
	require.NoError(t, os.Rename(b.path, b.path+".1"))
	b.appendText("three\n")
	require.Equal(t, []string{"two", "three"}, b.readLines())

	b.clock.Advance(9 * time.Second)
	_, err = writer.WriteString("late\nlast without end")
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.Equal(t, []string{"late"}, b.readLines())
	b.clock.Advance(9 * time.Second)
	require.Empty(t, b.readLines())
	b.clock.Advance(2 * time.Second)
	require.Equal(t, []string{"last without end"}, b.readLines())
	require.EqualValues(t, 1, b.tail.Stats().Rotated)
	require.NoError(t, b.tail.Commit())
	require.Len(t, b.cfg.Checkpoint.Get(b.path), 1)
}

func TestRotationsWhileTheAgentWasDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	b.appendText("one\n")
	require.Equal(t, []string{"one"}, b.readLines())
	require.NoError(t, b.tail.Commit())
	require.NoError(t, b.tail.Close())
	b.appendText("two\n")
	require.NoError(t, os.Rename(b.path, b.path+".2"))
	b.appendText("three\n")
	require.NoError(t, os.Rename(b.path, b.path+".1"))
	require.NoError(t, os.WriteFile(b.path+".0.gz", []byte("packed"), 0o600))
	require.NoError(t, os.WriteFile(b.path+"book", []byte("another log\n"), 0o600))
	b.appendText("four\n")
	b.restartAgent()
	require.Equal(t, []string{"two", "three", "four"}, b.readLines())
	require.Zero(t, b.tail.Stats().Vanished)
}

func TestADeletedAndRecreatedFileIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	for _, running := range []bool{true, false} {
		b.appendText("old one\nold two\n")
		b.readLines()
		require.NoError(t, b.tail.Commit())
		if !running {
			require.NoError(t, b.tail.Close())
		}
		require.NoError(t, os.Remove(b.path))
		b.appendText("new one\nnew two\nnew three\n") // Often with the old inode.
		if !running {
			b.restartAgent()
		}
		require.Equal(t, []string{"new one", "new two", "new three"}, b.readLines(), "running %v", running)
	}
}

func TestTheSameInodeWithOtherBytesIsAnotherFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	b.appendText("old one\nold two\n")
	b.readLines()
	require.NoError(t, b.tail.Commit())
	require.NoError(t, b.tail.Close())
	require.NoError(t, os.WriteFile(b.path, []byte("new one\nnew two\nnew three\n"), 0o600)) // Keeps the inode.
	b.restartAgent()
	require.Equal(t, []string{"new one", "new two", "new three"}, b.readLines())
	require.EqualValues(t, 1, b.tail.Stats().Vanished)
}

func TestCopytruncateIsSeenAndCounted(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{
		"shorter": "new\n", "grown past the offset": strings.Repeat("new line\n", 20), "empty first": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tail.Config{})
			b.appendText("one\ntwo\nthree\n")
			require.Len(t, b.readLines(), 3)
			require.NoError(t, os.Truncate(b.path, 0))
			b.appendText(next)
			require.Len(t, b.readLines(), strings.Count(next, "\n"))
			b.appendText("after\n")
			require.Equal(t, []string{"after"}, b.readLines())
			require.EqualValues(t, 1, b.tail.Stats().Truncated)
		})
	}
}

func TestAHoleLeftByAWriterThatDoesNotAppend(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{MaxLine: 100})
	b.appendText("one\n")
	require.Len(t, b.readLines(), 1)
	require.NoError(t, os.Truncate(b.path, 0))
	require.NoError(t, os.Truncate(b.path, 300_000))
	b.appendText("two\n")
	require.Equal(t, []string{"two"}, b.readLines())
	require.Zero(t, b.tail.Stats().Long)
}

// It runs alone, because it measures what the process allocates.
func TestALongLineIsPassedOverInBoundedMemory(t *testing.T) {
	b := newBench(t, tail.Config{MaxLine: 1000, MaxStep: 64 << 20})
	b.appendText("one\n")
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 48 {
		_, err = f.Write(piece)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, []string{"one"}, b.readLines())
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	require.NoError(t, b.tail.Commit())
	require.EqualValues(t, 4, b.cfg.Checkpoint.Get(b.path)[0].Offset, "never in the middle of a line")
	b.appendText("\ntwo\n" + strings.Repeat("y", 1000) + "\n" + strings.Repeat("y", 1001) + "\n")
	require.Equal(t, []string{"two", strings.Repeat("y", 1000)}, b.readLines())
	require.EqualValues(t, 2, b.tail.Stats().Long)
}

func TestFromEndPassesOverWhatIsThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{FromEnd: true})
	b.appendText("one\ntwo\nthr")
	require.Empty(t, b.readLines())
	b.appendText("ee\n")
	require.Equal(t, []string{"three"}, b.readLines())
	require.NoError(t, b.tail.Commit())
	b.appendText("four\n")
	b.restartTail()
	require.Equal(t, []string{"four"}, b.readLines())
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret\n"), 0o600))
	refuse := func(why string) {
		_, err := b.tail.Read(context.Background())
		var refused *tail.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, why)
		require.NoError(t, os.Remove(b.path))
	}
	require.NoError(t, os.Symlink(secret, b.path))
	refuse("symbolic link")
	require.NoError(t, syscall.Mkfifo(b.path, 0o600))
	refuse("pipe")
	require.NoError(t, os.Mkdir(b.path, 0o700))
	refuse("folder")
	b.appendText("one\n")
	require.Equal(t, []string{"one"}, b.readLines())

	// A link that takes the place of the log is not followed, nor one beside it.
	require.NoError(t, os.Rename(b.path, b.path+".1"))
	require.NoError(t, os.Symlink(secret, b.path+".0"))
	require.NoError(t, os.Symlink(secret, b.path))
	refuse("symbolic link")
	b.appendText("two\n")
	require.Equal(t, []string{"two"}, b.readLines())
}

func TestTheHeaderIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{Header: true})
	b.appendText("a,b\n1,2\n")
	b.readLines()
	require.NoError(t, b.tail.Commit())
	b.appendText("3,4\n")
	b.restartTail()
	entries, err := b.tail.Read(context.Background())
	require.NoError(t, err)
	require.Equal(t, []tail.Entry{{Text: "3,4", Number: 3, Header: "a,b"}}, entries)
}

func TestAnEndedContextStopsTheReading(t *testing.T) {
	t.Parallel()
	b := newBench(t, tail.Config{})
	b.appendText("one\n")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	_, err := b.tail.Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"one"}, b.readLines())
}

func TestAConfigNeedsAPathAndACheckpoint(t *testing.T) {
	t.Parallel()
	_, err := tail.New(tail.Config{Path: "x"})
	require.Error(t, err)
}
