package tail_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/clock"
)

// world is a log writer with its rotator, and an agent that may be killed.
type world struct {
	t         require.TestingT
	dir       string
	clock     *clock.Manual
	tail      *tail.Tail
	written   int
	partial   string
	seen      map[string]int
	since     int // Lines handed over since the last commit.
	allowed   int // Duplicates that the kills so far explain.
	seenAll   int
	rotations int
}

func newWorld(t require.TestingT, dir string) *world {
	w := &world{t: t, dir: dir, clock: clock.NewManual(time.Unix(1_800_000_000, 0)), seen: map[string]int{}}
	w.start()
	return w
}

func (w *world) path() string { return filepath.Join(w.dir, "app.log") }

func (w *world) start() {
	c, err := history.OpenCheckpoint(filepath.Join(w.dir, "state.json"))
	require.NoError(w.t, err)
	w.tail, err = tail.New(tail.Config{Path: w.path(), Checkpoint: c, Clock: w.clock, MaxStep: 300, Drain: time.Second})
	require.NoError(w.t, err)
}

func (w *world) appendText(text string) {
	f, err := os.OpenFile(w.path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	_, err = f.WriteString(text)
	require.NoError(w.t, err)
	require.NoError(w.t, f.Close())
}

func (w *world) nextLine() string { w.written++; return fmt.Sprintf("line %06d", w.written) }

func (w *world) writeLine() {
	w.appendText(w.partial + "\n" + w.nextLine() + "\r\n")
	w.partial = ""
}

func (w *world) writePart() {
	if w.partial == "" {
		w.appendText(w.nextLine())
		w.partial = " and more"
	}
}

func (w *world) rotateLog() {
	if _, err := os.Stat(w.path()); err != nil {
		return
	}
	w.appendText("\n")
	w.partial = ""
	for n := w.rotations; n >= 0; n-- {
		_ = os.Rename(fmt.Sprintf("%s.%d", w.path(), n), fmt.Sprintf("%s.%d", w.path(), n+1))
	}
	require.NoError(w.t, os.Rename(w.path(), w.path()+".0"))
	w.rotations++
}

func (w *world) stepOnce() int {
	entries, err := w.tail.Read(context.Background())
	require.NoError(w.t, err)
	for _, e := range entries {
		if e.Text != "" && e.Text != " and more" {
			w.seen[e.Text[:11]]++
			w.seenAll++
		}
	}
	w.since += len(entries)
	return len(entries)
}

func (w *world) commitLines() {
	require.NoError(w.t, w.tail.Commit())
	w.since = 0
}

func (w *world) killAgent() {
	require.NoError(w.t, w.tail.Close())
	w.allowed += w.since
	w.since = 0
	w.start()
}

// readToEnd reads until nothing is left.
func (w *world) readToEnd() {
	w.appendText("\n")
	for range 3 {
		for w.stepOnce() > 0 {
		}
		w.clock.Advance(2 * time.Second)
	}
}

func (w *world) checkLines() {
	for n := 1; n <= w.written; n++ {
		require.Positive(w.t, w.seen[fmt.Sprintf("line %06d", n)], "line %d of %d is lost", n, w.written)
	}
	require.LessOrEqual(w.t, w.seenAll-w.written, w.allowed, "duplicates beyond what was read since a checkpoint")
	require.Zero(w.t, w.tail.Stats().Truncated)
}

func TestNoLineIsLostInAnyOrderOfRotationsAndKills(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "log")
		require.NoError(rt, err)
		w := newWorld(rt, dir)
		w.writeLine() // What was rotated before the very first look is history, not log.
		w.stepOnce()
		w.commitLines()
		actions := []func(){
			w.writeLine, w.writeLine, w.writeLine, w.writePart, w.rotateLog, func() { w.stepOnce() },
			func() { w.stepOnce() },
			w.commitLines, w.killAgent, func() { w.clock.Advance(700 * time.Millisecond) },
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(actions)-1), 1, 60).Draw(rt, "actions") {
			actions[i]()
		}
		w.readToEnd()
		w.checkLines()
	})
}

func TestKilledAtEveryCheckpoint(t *testing.T) {
	t.Parallel()
	for kill := range 40 {
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, t.TempDir())
			w.writeLine()
			w.stepOnce()
			w.commitLines()
			for i := range 40 {
				w.writeLine()
				if i%4 == 0 {
					w.rotateLog()
				}
				w.stepOnce()
				if i == kill {
					w.killAgent()
				}
				if i%3 == 0 {
					w.commitLines()
				}
			}
			w.readToEnd()
			w.checkLines()
			require.LessOrEqual(t, w.allowed, 16)
		})
	}
}

func TestManyRotationsBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.writeLine()
	w.stepOnce()
	for i := range 300 {
		w.writeLine()
		require.NoError(t, os.Rename(w.path(), fmt.Sprintf("%s-%05d", w.path(), i)))
		if i%7 == 0 {
			w.appendText("")
			w.stepOnce()
			w.commitLines()
		}
		w.clock.Advance(100 * time.Millisecond)
	}
	w.readToEnd()
	w.checkLines()
}
