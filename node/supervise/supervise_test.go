package supervise_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/supervise/supervisetest"
	"github.com/forewarm/forewarm/node/work"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// patient waits for what comes by itself.
var patient = work.Runner{HangUp: time.Minute, Terminate: time.Minute, Kill: time.Minute, Drain: time.Minute}

// daemon is one of a node, which may be replaced by another.
type daemon struct {
	*supervise.Supervisors
	t   *testing.T
	dir string
}

func newDaemon(t *testing.T, dir string) daemon {
	t.Helper()
	s, err := supervise.Open(dir, supervisetest.Command())
	require.NoError(t, err)
	return daemon{s, t, dir}
}

// start has a shell script supervised.
func (d daemon) start(resumeID string, patience time.Duration, script string) *supervise.Watch {
	d.t.Helper()
	w, err := d.Start("alc_1", resumeID, supervise.Order{Patience: patience, Runner: patient,
		Place: hold.Place{Home: d.t.TempDir()}, Command: work.Command{Arguments: []string{"sh", "-c", script}}})
	require.NoError(d.t, err)
	return w
}

// read receives numbered messages until the output has a text, and returns all of it and their number.
func read(t *testing.T, line *session.Line, until string) (output string, messages uint64) {
	t.Helper()
	for !strings.Contains(output, until) {
		c, data, err := line.Receive()
		require.NoError(t, err, output)
		if session.IsNumbered(c, data) {
			messages++
		}
		if c == session.Stdout || c == session.Result {
			output += string(data)
		}
	}
	return output, messages
}

func (d daemon) resume(resumeID string, taken uint64) *session.Line {
	d.t.Helper()
	line, err := d.Resume("alc_1", resumeID, taken)
	require.NoError(d.t, err)
	return line
}

func TestACommandOutlivesItsDaemon(t *testing.T) {
	dir, id := t.TempDir(), session.NewResumeID()
	first := newDaemon(t, dir)
	watch := first.start(id, time.Minute, "echo one; read x; echo $x; read x; exit $x")
	line := first.resume(id, 0)
	_, taken := read(t, line, "one\n")
	line.Close()
	watch.Close()
	first.Close()

	second := newDaemon(t, dir)
	defer second.Close()
	earlier, err := second.Earlier()
	require.NoError(t, err)
	require.Len(t, earlier, 1)
	require.Equal(t, "alc_1", earlier[0].AllocationID)
	line = second.resume(id, 0)
	require.NoError(t, line.Send(session.Stdin, []byte("two\n")))
	output, _ := read(t, line, "two\n")
	require.Equal(t, "one\ntwo\n", output, "nobody had said that the first message was taken")
	line = second.resume(id, taken) // the line before is over
	require.NoError(t, line.Send(session.Stdin, []byte("7\n")))
	output, more := read(t, line, "exit_code")
	require.Equal(t, "two\n"+`{"exit_code":7}`, output)
	require.NoError(t, line.Send(session.Ack, session.EncodeCount(taken+more)))
	<-earlier[0].Gone()
	_, err = second.Resume("alc_1", id, 0)
	require.ErrorIs(t, err, supervise.ErrNotThere)
	require.Empty(t, names(t, dir))
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// A command whose holder does not come back is hung up: at once where they say so or cannot come back, or when its
// patience is over.
func TestACommandIsHungUp(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		leave    func(*session.Line)
	}{
		"they say so":           {time.Hour, func(l *session.Line) { _ = l.Send(session.HangUp, nil) }},
		"they cannot come back": {0, (*session.Line).Close},
		"they do not come back": {50 * time.Millisecond, (*session.Line).Close},
	} {
		t.Run(name, func(t *testing.T) {
			d, id := newDaemon(t, t.TempDir()), session.NewResumeID()
			defer d.Close()
			mark := filepath.Join(t.TempDir(), "mark")
			w := d.start(id, c.patience,
				"trap 'echo hung up > "+mark+"; exit' HUP; echo one; while :; do read x || sleep 1000; done")
			line := d.resume(id, 0)
			read(t, line, "one\n")
			c.leave(line)
			<-w.Gone()
			text, err := os.ReadFile(mark) //nolint:gosec // the test's own
			require.NoError(t, err)
			require.Equal(t, "hung up\n", string(text))
			require.Empty(t, names(t, d.dir))
		})
	}
}

// Others' commands, and such as are none, are not there, and neither is one whose supervisor was killed.
func TestWhatIsNotThere(t *testing.T) {
	d, id := newDaemon(t, t.TempDir()), session.NewResumeID()
	defer d.Close()
	w := d.start(id, time.Hour, "echo $PPID; read x")
	for _, other := range [][2]string{{"alc_2", id}, {"alc_1", session.NewResumeID()}, {"alc_1", "../" + id}, {"..", id}} {
		_, err := d.Resume(other[0], other[1], 0)
		require.ErrorIs(t, err, supervise.ErrNotThere)
	}
	line := d.resume(id, 0)
	output, _ := read(t, line, "\n")
	w.Close()
	kill(t, strings.TrimSpace(output))
	_, _, err := line.Receive()
	require.Error(t, err)
	earlier, err := d.Earlier()
	require.NoError(t, err)
	require.Empty(t, earlier)
	require.Empty(t, names(t, d.dir))
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
}

// That a command could not be started is how its session ends.
func TestACommandThatCannotBeStarted(t *testing.T) {
	d, id := newDaemon(t, t.TempDir()), session.NewResumeID()
	defer d.Close()
	w, err := d.Start("alc_1", id, supervise.Order{Patience: time.Hour, Runner: patient,
		Place: hold.Place{Home: t.TempDir()}, Command: work.Command{Arguments: []string{"no-such-program"}}})
	require.NoError(t, err)
	line := d.resume(id, 0)
	output, taken := read(t, line, "}")
	end, err := session.ParseEnd([]byte(output))
	require.NoError(t, err)
	require.Equal(t, session.NotStarted, end.Code)
	require.NoError(t, line.Send(session.Ack, session.EncodeCount(taken)))
	<-w.Gone()
}
