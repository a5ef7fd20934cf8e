package glob_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/glob"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// bench is a folder of logs and the group that follows them.
type bench struct {
	*testing.T
	dir        string
	clock      *clock.Manual
	checkpoint *history.Checkpoint
	group      *glob.Group
	pattern    string
	most       int
}

func newBench(t *testing.T, pattern string) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), clock: clock.NewManual(time.Unix(1_800_000_000, 0)), pattern: pattern}
	require.NoError(t, os.Mkdir(b.path("logs"), 0o700))
	t.Cleanup(func() { _ = b.group.Close() })
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// restartGroup makes the group anew from its checkpoint.
func (b *bench) restartGroup() {
	b.Helper()
	if b.group != nil {
		require.NoError(b, b.group.Close())
	}
	var err error
	b.checkpoint, err = history.OpenCheckpoint(b.path("checkpoint.json"))
	require.NoError(b, err)
	b.group, err = glob.New(glob.Config{
		Pattern: b.path(b.pattern), Name: "train", Checkpoint: b.checkpoint, Clock: b.clock, MaxFiles: b.most,
		Open: func(path, name string, late bool) (source.Source, error) {
			return tail.New(tail.Config{Path: path, Name: name, Checkpoint: b.checkpoint, Clock: b.clock,
				FromEnd: !late})
		},
	})
	require.NoError(b, err)
}

func (b *bench) appendFile(name, text string) {
	b.Helper()
	f, err := os.OpenFile(b.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(b, err)
	_, err = f.WriteString(text)
	require.NoError(b, err)
	require.NoError(b, f.Close())
}

// newLines are what is new, committed.
func (b *bench) newLines() (found []string) {
	b.Helper()
	items, err := b.group.Step(b.Context())
	require.NoError(b, err)
	for _, i := range items {
		found = append(found, i.Line.Text)
	}
	require.NoError(b, b.group.Commit())
	return found
}

func TestFilesThatComeLaterAreReadWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*.log")
	b.appendFile("logs/old.log", "before\n")
	b.restartGroup()
	require.Empty(t, b.newLines(), "what was there is followed from its end")
	require.Equal(t, []string{b.path("logs")}, b.group.Watch())
	b.appendFile("logs/old.log", "one\n")
	b.appendFile("logs/new.log", "two\nthree\n")
	b.appendFile("logs/other.txt", "not matched\n")
	require.NoError(t, os.Mkdir(b.path("logs/folder.log"), 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", b.path("logs/link.log")))
	require.Equal(t, []string{"two", "three", "one"}, b.newLines())
	require.Empty(t, b.newLines())

	b.appendFile("logs/new.log", "four\n")
	b.restartGroup() // a restart goes on where it was
	require.Equal(t, []string{"four"}, b.newLines())
}

// Rotation inside the pattern: no line is lost and none is read twice.
func TestRotationInsideThePattern(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*")
	b.restartGroup()
	require.Empty(t, b.newLines())
	want, got := []string(nil), []string(nil)
	for i := range 20 {
		text := fmt.Sprintf("line %d", i)
		b.appendFile("logs/train.log", text+"\n")
		want = append(want, text)
		if i%3 == 2 {
			for n := 5; n >= 1; n-- {
				_ = os.Rename(b.path(fmt.Sprintf("logs/train.log.%d", n)),
					b.path(fmt.Sprintf("logs/train.log.%d", n+1)))
			}
			require.NoError(t, os.Rename(b.path("logs/train.log"), b.path("logs/train.log.1")))
		}
		if i%2 == 0 {
			got = append(got, b.newLines()...)
		}
		b.clock.Advance(5 * time.Second)
	}
	got = append(got, b.newLines()...)
	require.ElementsMatch(t, want, got)
}

func TestTooManyFilesAreToldOnceAndTheLatestAreRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*.log")
	b.most = 2
	b.restartGroup()
	require.Empty(t, b.newLines())
	for i := range 4 {
		name := fmt.Sprintf("logs/%d.log", i)
		b.appendFile(name, fmt.Sprintf("of %d\n", i))
		at := b.clock.Now().Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(b.path(name), at, at))
	}
	items, err := b.group.Step(t.Context())
	require.ErrorContains(t, err, "matches 4 files, of which the 2 that changed last are read")
	require.Len(t, items, 2)
	require.Equal(t, "of 2", items[0].Line.Text)
	require.NoError(t, b.group.Commit())
	require.Empty(t, b.newLines(), "told once")
	at := b.clock.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(b.path("logs/0.log"), at, at))
	require.Equal(t, []string{"of 0"}, b.newLines(), "one that changes again takes its turn")
}

func TestAFileThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*.log")
	b.restartGroup()
	require.Empty(t, b.newLines())
	b.appendFile("logs/a.log", "one\n")
	b.appendFile("logs/b.log", "two\n")
	require.Equal(t, []string{"one", "two"}, b.newLines())
	require.Len(t, b.checkpoint.Names(), 2)
	require.NoError(t, os.Remove(b.path("logs/a.log")))
	require.Empty(t, b.newLines())
	require.Len(t, b.checkpoint.Names(), 2, "it may come back")
	b.clock.Advance(time.Minute)
	require.Empty(t, b.newLines())
	require.Equal(t, []string{"train:" + b.path("logs/b.log")}, b.checkpoint.Names())
	require.NoError(t, os.Remove(b.path("logs/b.log")))
	b.restartGroup() // it went while nobody looked
	require.Empty(t, b.newLines())
	b.clock.Advance(time.Minute)
	require.Empty(t, b.newLines())
	require.Empty(t, b.checkpoint.Names())
}

// failing is a source that cannot be read.
type failing struct{ source.Source }

func (failing) Step(context.Context) ([]source.Item, error) { return nil, errors.New("no permission") }

func TestOneThatCannotBeReadDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*.log")
	b.restartGroup()
	g, err := glob.New(glob.Config{Pattern: b.path(b.pattern), Checkpoint: b.checkpoint, Clock: b.clock,
		Open: func(path, name string, _ bool) (source.Source, error) {
			followed, err := tail.New(tail.Config{Path: path, Name: name, Checkpoint: b.checkpoint, Clock: b.clock})
			if filepath.Base(path) == "a.log" {
				return failing{followed}, err
			}
			return followed, err
		}})
	require.NoError(t, err)
	b.appendFile("logs/a.log", "hidden\n")
	b.appendFile("logs/b.log", "seen\n")
	items, err := g.Step(t.Context())
	require.ErrorContains(t, err, "a.log: no permission")
	require.Len(t, items, 1)
	require.NoError(t, g.Close())
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "logs/*.log")
	b.appendFile("logs/a[1].log", "x\n")
	require.False(t, glob.IsPattern(b.path("logs/a[1].log")), "a file of that name is there")
	require.True(t, glob.IsPattern(b.path("logs/a[2].log")))
	require.False(t, glob.IsPattern("/var/log/train.log"))
	found, err := glob.Matches(b.path(b.pattern))
	require.NoError(t, err)
	require.Len(t, found, 1)
	b.restartGroup()
	for _, bad := range []glob.Config{{Pattern: "*"}, {Pattern: "[", Checkpoint: b.checkpoint, Open: noSource},
		{Checkpoint: b.checkpoint, Open: noSource}} {
		_, err := glob.New(bad)
		require.Error(t, err)
	}
	g, err := glob.New(glob.Config{Pattern: "/runs/*/out/*.log", Checkpoint: b.checkpoint, Open: noSource})
	require.NoError(t, err)
	require.Equal(t, "/runs/*/out/*.log", g.Name())
	require.Equal(t, []string{"/runs"}, g.Watch())
}

func noSource(string, string, bool) (source.Source, error) { return nil, errors.New("none") }
